// Decides whether a field shows its default value or the entered one.

/** One field's default value. */
export class Entered {
  #default;
  #enteredAt = null;

  /** @param {{completed: number}} actions the number of completed actions of the widget */
  constructor(actions) {
    this.actions = actions;
  }

  /** Records that the reader changed the field. */
  changed() {
    this.#enteredAt = this.actions.completed;
  }

  /**
   * Whether the field takes a default value: if the value is new, and the reader has not changed the field since the
   * last completed action.
   */
  takes(value) {
    if (value === this.#default) return false;
    this.#default = value;
    return this.#enteredAt !== this.actions.completed;
  }
}
