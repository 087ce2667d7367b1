// Whether a field shows its default value or what the reader entered.

/** One field's default value. */
export class Entered {
  #default;
  #enteredAt = null;

  /** @param {{completed: number}} actions how many actions of the widget are complete */
  constructor(actions) {
    this.actions = actions;
  }

  /** The reader changed the field. */
  changed() {
    this.#enteredAt = this.actions.completed;
  }

  /**
   * Whether the field takes a default value: when it is a new one, and the reader has not changed the field since the
   * last complete action.
   */
  takes(value) {
    if (value === this.#default) return false;
    this.#default = value;
    return this.#enteredAt !== this.actions.completed;
  }
}
