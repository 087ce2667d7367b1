//! The module that pages import, loaded from the service itself, in Node.

use std::process::Command;

use integration_tests::TestService;
use serde_json::json;

use super::{Published, answers, frozen, slow};

/// The module's requests go to the alias, like a page's requests.
const SCRIPT: &str = r"
import http from 'node:http';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
const { PORT, HOST } = process.env;
const cut = [];
const ask = (path, options) => new Promise((resolve, reject) => {
  const headers = { ...options.headers, host: HOST, origin: `http://${HOST}`, 'sec-fetch-site': 'same-origin' };
  const request = http.request({ port: PORT, host: '127.0.0.1', path, method: options.method ?? 'GET', headers, signal: options.signal }, (answer) => {
    const body = [204, 304].includes(answer.statusCode) ? null : Readable.toWeb(answer);
    answer.on('close', () => answer.complete || cut.push(path));
    resolve(new Response(body, { status: answer.statusCode, headers: answer.headers }));
  });
  request.on('error', reject);
  request.end(options.body);
});
// The module asks below its own address, which is a file here.
const folder = new URL('.', import.meta.url);
globalThis.fetch = (url, options = {}) => ask(`/__service/${url.href.slice(folder.href.length)}`, options);
const source = await (await ask('/__service/client.js', {})).text();
writeFileSync(new URL('client.mjs', folder), source);
const { config, start, run, states, call, ServiceError } = await import('./client.mjs');
assert.equal((await config()).app.alias, 'notes');
const seen = [];
const output = await call('form', { text: 'you' }, { onState: (state) => seen.push(state) });
assert.deepEqual(output, { answer: 'hello you' });
assert.equal(seen.at(-1), 'succeeded');
const first = await start('form', { text: 'a' }, { key: 'one' });
const again = await start('form', { text: 'a' }, { key: 'one' });
assert.equal(again.handle, first.handle);
const all = [];
for await (const state of states(first.handle)) all.push(state);
assert.equal(all.at(-1), 'succeeded');
assert.deepEqual((await run(first.handle)).output, { answer: 'hello a' });
const refused = async (promise, code, status) => {
  const error = await promise.then(() => null, (error) => error);
  assert.ok(error instanceof ServiceError, String(error));
  assert.deepEqual([error.code, error.status], [code, status]);
  return error;
};
// Each stream is read to its end, so that its connection is used again.
assert.deepEqual(cut, []);
const invalid = await refused(start('form', { text: 1 }), 'input_invalid', 422);
assert.equal(invalid.errors[0].pointer, '/text');
await refused(start('none', {}), 'not_found', 404);
await refused(call('late', {}), 'timed_out', 0);
const stop = new AbortController();
const left = call('slow', {}, { signal: stop.signal, onState: () => stop.abort() });
assert.equal((await left.then(() => null, (error) => error)).name, 'AbortError');
console.log('done');
";

#[tokio::test]
async fn the_client_module_runs_workflows() {
    if let Ok(line) = std::env::var("CALLBOARD_MISSING_NODE") {
        panic!("Node is not installed; install it with: {line}");
    }
    let t = TestService::start().await;
    let schema = json!({"properties": {"text": {"type": "string"}}});
    let form = frozen(&t, answers(), json!({"input_schema": schema})).await;
    let late = frozen(&t, slow(30.0), json!({"limits": {"timeout_seconds": 1}})).await;
    let slow = frozen(&t, slow(30.0), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", form), ("late", late), ("slow", slow)]).await;
    let folder = tempfile::TempDir::new().unwrap();
    let script = folder.path().join("page.mjs");
    std::fs::write(&script, SCRIPT).unwrap();
    let mut node = Command::new("node");
    node.arg(&script).env("HOST", &app.host).env("PORT", t.address().port().to_string());
    let output = tokio::task::spawn_blocking(move || node.output().expect("node starts")).await.unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("done"), "{text}");
    let run = t.scalar("SELECT run_id FROM app_runs WHERE binding = 'slow'").await;
    t.post(&format!("/api/runs/{run}/cancel"), "").await;
}
