/** Types of `/__service/client.js`. */

export type State = 'queued' | 'running' | 'succeeded' | 'failed' | 'timed_out' | 'cancelled';

export interface Run<Output = Record<string, unknown>> {
  /** What reads the run; keep it as long as the run matters. */
  handle: string;
  state: State;
  /** Of a run that succeeded, if visitors can read it. */
  output?: Output;
  error?: { code: 'run_failed' | 'timed_out' | 'cancelled' | 'output_too_large' };
}

export type Verb = 'read' | 'create' | 'update' | 'delete';

export interface Config {
  app: { alias: string; name: string };
  release: { id: string; created_at: string };
  auth: { mode: 'required' | 'optional' | 'none'; login_url: string; session_url: string; logout_url: string };
  bindings: Record<string, { access_mode: 'anonymous' | 'authenticated'; input_schema: object | null }>;
  /** With the verbs of the caller. */
  collections: Record<string, { kind: 'shared' | 'user'; capabilities: Verb[] }>;
}

export interface Session {
  authenticated: boolean;
  display_name?: string;
  expires_at?: string;
}

/** A record of a collection. */
export interface Rec<Data = Record<string, unknown>> {
  id: string;
  version: number;
  created_at: string;
  updated_at: string;
  data: Data;
}

/** A record after a merge: without its data if the visitor cannot read it. */
export type Merged<Data = Record<string, unknown>> = Omit<Rec<Data>, 'data'> & { data?: Data };

export interface Page<Data = Record<string, unknown>> {
  items: Rec<Data>[];
  next_cursor: string | null;
}

/** An answer that is not a success, or a run that did not succeed (status 0). */
export declare class ServiceError extends Error {
  readonly code: string;
  readonly status: number;
  /** Seconds after which the same request may succeed. */
  readonly retryAfter: number | null;
  readonly errors: { pointer: string; code: string; message: string }[];
  /** Of `version_conflict`: the version of the record. */
  readonly currentVersion: number | null;
  readonly requestId: string | null;
}

export declare function config(): Promise<Config>;
export declare function start(binding: string, input?: object, options?: { key?: string; signal?: AbortSignal }): Promise<Run>;
export declare function run(handle: string, options?: { signal?: AbortSignal }): Promise<Run>;
export declare function states(handle: string, options?: { signal?: AbortSignal }): AsyncIterable<State>;
/** Starts a run, waits for its end and returns its output; undefined if visitors cannot read it. */
export declare function call<Output = Record<string, unknown>>(
  binding: string,
  input?: object,
  options?: { key?: string; signal?: AbortSignal; onState?: (state: State) => void },
): Promise<Output | undefined>;

export declare const auth: {
  session(): Promise<Session>;
  login(returnTo?: string): void;
  logout(): Promise<void>;
};

export declare const data: {
  list<Data>(
    collection: string,
    options?: { limit?: number; cursor?: string | null; order?: 'created_at' | '-created_at'; signal?: AbortSignal },
  ): Promise<Page<Data>>;
  get<Data>(collection: string, id: string): Promise<Rec<Data>>;
  create<Data>(collection: string, value: Data, options?: { key?: string }): Promise<Rec<Data>>;
  replace<Data>(collection: string, id: string, value: Data, version: number): Promise<Rec<Data>>;
  merge<Data>(collection: string, id: string, patch: object, version: number): Promise<Merged<Data>>;
  remove(collection: string, id: string, version: number): Promise<void>;
};
