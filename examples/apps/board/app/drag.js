// Cards that are dragged into a lane with a mouse. The buttons of a card do the same with a keyboard and on a phone.

/** What happens to the card that is being dragged; it gets the lane. */
let drop = null;

/** Lets a card be dragged; `moved` is called with the lane in which it is dropped. */
export function draggable(card, moved) {
  card.draggable = true;
  card.addEventListener('dragstart', (event) => {
    drop = moved;
    event.dataTransfer.effectAllowed = 'move';
    // Some browsers drag nothing that has no data.
    event.dataTransfer.setData('text/plain', card.querySelector('h3').textContent);
    card.classList.add('dragged');
  });
  card.addEventListener('dragend', () => {
    drop = null;
    card.classList.remove('dragged');
  });
}

/** Lets cards be dropped into a lane. */
export function target(section, lane) {
  const show = (isOver) => section.classList.toggle('over', isOver);
  section.addEventListener('dragover', (event) => {
    if (!drop) return;
    event.preventDefault();
    show(true);
  });
  section.addEventListener('dragleave', (event) => {
    if (!section.contains(event.relatedTarget)) show(false);
  });
  section.addEventListener('drop', (event) => {
    event.preventDefault();
    show(false);
    drop?.(lane);
  });
}
