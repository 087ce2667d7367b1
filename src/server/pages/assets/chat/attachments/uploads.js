// The attachments of the next message, and the queue of their uploads.

import { attachmentOf } from './files.js';

/** Maximum attachments per message. */
export const MAX_FILES = 10;
/** Maximum concurrent uploads: the limit of the service. */
const CONCURRENT = 2;

/**
 * @typedef {object} Upload
 * @property {string} key
 * @property {File} file
 * @property {'waiting' | 'uploading' | 'done' | 'failed'} state
 * @property {number} progress between 0 and 1
 * @property {import('./files.js').Attachment | null} attachment set when the upload is done
 * @property {{code: string, message?: string, status?: number, retryAfter?: number} | null} error set when the upload has failed
 */

/** The uploads, in the order in which the files were added. */
export class Uploads {
  /** @type {Upload[]} */
  list = [];
  /** Abort controllers of the running uploads, by key. */
  #running = new Map();
  #keys = 0;

  /**
   * @param {object} ports
   * @param {(file: File, how: {onProgress: (part: number) => void, signal: AbortSignal}) => Promise<object>} ports.send
   * @param {(id: string) => void} ports.discard deletes an attachment that will not be sent
   * @param {() => void} ports.onChange after each change
   */
  constructor({ send, discard, onChange }) {
    this.send = send;
    this.discard = discard;
    this.onChange = onChange;
  }

  /**
   * Adds files up to the limit of a message.
   * @param {File[]} files
   * @returns {number} the number of files above the limit
   */
  add(files) {
    const taken = files.slice(0, Math.max(MAX_FILES - this.list.length, 0));
    const added = taken.map((file) => ({ ...fresh(), key: String((this.#keys += 1)), file }));
    this.list = [...this.list, ...added];
    this.#next();
    return files.length - taken.length;
  }

  /** Removes a file: cancels its upload, or deletes the uploaded attachment. */
  remove(key) {
    const upload = this.list.find((known) => known.key === key);
    if (upload === undefined) return;
    this.list = this.list.filter((known) => known !== upload);
    this.#cancel(key);
    if (upload.attachment !== null) this.discard(upload.attachment.id);
    this.#next();
  }

  /** Retries a failed upload. */
  retry(key) {
    if (this.list.find((known) => known.key === key)?.state !== 'failed') return;
    this.#change(key, fresh());
    this.#next();
  }

  /**
   * The reason why the message cannot be sent yet.
   * @returns {'uploading' | 'failed' | null}
   */
  get blocked() {
    if (this.list.some(({ state }) => state === 'failed')) return 'failed';
    return this.list.some(({ state }) => state !== 'done') ? 'uploading' : null;
  }

  /** Returns the attachments for the message that is being sent, and clears the list. */
  take() {
    if (this.blocked !== null) return [];
    const attachments = this.list.map(({ attachment }) => attachment);
    this.list = [];
    this.onChange();
    return attachments;
  }

  /** Cancels all uploads. */
  end() {
    this.list = [];
    for (const key of [...this.#running.keys()]) this.#cancel(key);
  }

  #cancel(key) {
    this.#running.get(key)?.abort();
    this.#running.delete(key);
  }

  #next() {
    for (const { key, file, state } of this.list) {
      if (state !== 'waiting' || this.#running.size >= CONCURRENT) continue;
      const abort = new AbortController();
      this.#running.set(key, abort);
      this.#change(key, { state: 'uploading' });
      this.#upload(key, file, abort);
    }
    this.onChange();
  }

  async #upload(key, file, abort) {
    const isCurrent = () => this.#running.get(key) === abort;
    const onProgress = (progress) => {
      if (!isCurrent()) return;
      this.#change(key, { progress });
      this.onChange();
    };
    let result;
    try {
      const attachment = attachmentOf(await this.send(file, { onProgress, signal: abort.signal }));
      result = attachment === null ? failed({ code: 'page.failed' }) : { state: 'done', progress: 1, attachment };
    } catch (error) {
      result = failed(error);
    }
    if (!isCurrent()) {
      // The file was removed just when its upload completed.
      if (result.state === 'done') this.discard(result.attachment.id);
      return;
    }
    this.#running.delete(key);
    this.#change(key, result);
    this.#next();
  }

  #change(key, change) {
    this.list = this.list.map((upload) => (upload.key === key ? { ...upload, ...change } : upload));
  }
}

function fresh() {
  return { state: 'waiting', progress: 0, attachment: null, error: null };
}

function failed(error) {
  return { state: 'failed', progress: 0, error };
}

/**
 * Whether another attempt may succeed.
 * @param {{status?: number}} error
 */
export function canRetry({ status = 0 }) {
  return status < 400 || [408, 429].includes(status) || status >= 500;
}
