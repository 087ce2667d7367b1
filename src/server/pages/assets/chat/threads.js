// The visitor's threads that were read so far.

const PAGE = 30;

export class Threads {
  /** @param {import('./api.js').Api} api */
  constructor(api) {
    this.api = api;
    this.all = [];
    this.more = false;
    this.failed = false;
  }

  /** Reads the newest threads again; the older ones stay after them. */
  async refresh() {
    try {
      const page = await this.api.ask('threads.list', { limit: PAGE, order: 'desc' });
      const fresh = new Set(page.data.map(({ id }) => id));
      const oldest = page.data.at(-1);
      // A known thread that is newer than the end of the page, but not on the page, was deleted elsewhere.
      const older = this.all.filter(({ id, created_at: at }) => !fresh.has(id) && page.has_more && at <= oldest.created_at);
      this.more = older.length > 0 ? this.more : page.has_more;
      this.all = [...page.data, ...older];
      this.failed = false;
    } catch {
      this.failed = true;
    }
  }

  /** Reads the next page of older threads. */
  async further() {
    try {
      const page = await this.api.ask('threads.list', { limit: PAGE, order: 'desc', after: this.all.at(-1).id });
      this.all = [...this.all, ...page.data];
      this.more = page.has_more;
      this.failed = false;
    } catch {
      this.failed = true;
    }
  }

  async rename(id, title) {
    const renamed = await this.api.ask('threads.update', { thread_id: id, title });
    this.all = this.all.map((thread) => (thread.id === id ? renamed : thread));
  }

  async delete(id) {
    await this.api.ask('threads.delete', { thread_id: id });
    this.all = this.all.filter((thread) => thread.id !== id);
  }

  /** Sets a title that arrived in a stream. */
  titled({ id, title }) {
    this.all = this.all.map((thread) => (thread.id === id ? { ...thread, title } : thread));
  }
}
