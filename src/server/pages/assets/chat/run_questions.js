// Questions of runs that wait for a person (`wait_for_input`). Only users with permission to run the workflow may answer them; access
// to a visitor's thread is not enough.

import { PageTokens } from '../training/api.js';
import { ApiError } from './api.js';

const BASE = new URL('../../', import.meta.url);

/**
 * @typedef {object} RunQuestion
 * @property {string} run
 * @property {string} key
 * @property {string | null} message
 * @property {{type?: string} | null} schema of the answer
 */

export class RunQuestions {
  /**
   * @param {string} workflow its UUID
   * @param {'open' | 'token'} access `token`: the service requires authentication; the page exchanges the session cookie for a token
   */
  constructor(workflow, access) {
    this.workflow = workflow;
    this.tokens = access === 'token' ? new PageTokens() : null;
  }

  /** @returns {Promise<RunQuestion[]>} the open questions of a thread's turns */
  async open(thread) {
    const query = new URLSearchParams({ workflow: this.workflow, thread, waits: 'true' });
    const { data } = await this.#request(`api/runs?${query}`);
    const runs = await Promise.all(data.map(({ id }) => this.#request(`api/runs/${id}`)));
    return runs.flatMap(({ id, waits_for: waits }) =>
      waits.filter(({ kind }) => kind === 'input').map(({ key, message, schema }) => ({ run: id, key, message, schema })),
    );
  }

  /** @param {RunQuestion} question */
  async answer({ run, key }, value) {
    await this.#request(`api/runs/${run}/inputs/${encodeURIComponent(key)}`, { method: 'POST', body: JSON.stringify(value) });
  }

  async #request(path, init = {}) {
    const headers = { Accept: 'application/json', 'Content-Type': 'application/json' };
    if (this.tokens !== null) headers.Authorization = `Bearer ${await this.tokens.current()}`;
    let response;
    try {
      response = await fetch(new URL(path, BASE), { ...init, headers });
    } catch {
      throw new ApiError({ status: 0, code: 'request.failed' });
    }
    const body = await response.json().catch(() => null);
    if (response.ok && body !== null) return body;
    const { code, message } = body?.detail ?? {};
    throw new ApiError({ status: response.status, code: code ?? 'request.failed', message });
  }
}

/** Converts a typed answer to its value: parses JSON unless the schema requires a string. */
export function valueOf(text, schema) {
  if (schema === null || schema.type === 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
