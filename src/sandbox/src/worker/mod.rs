//! The worker process: reads requests from standard input, runs them one after another, and responds on standard
//! output. Each run has a new interpreter.

mod confine;
mod document;
mod image;
mod javascript;
mod json;
mod logs;
mod python;

use std::io::{Stdin, Stdout};
use std::process::ExitCode;
use std::sync::mpsc;

use rustix::event::{PollFd, PollFlags, poll};

use crate::call::Language;
use crate::frame::{self, LONGEST_REQUEST, READY, Response, Task, WorkerAnswer, WorkerRequest};
use crate::memory;
use confine::Size;

/// Stack size of the thread that runs code. Only used pages take memory.
const STACK: usize = 256 << 20;
/// Memory for Rust in addition to the code's limit: the request and the response.
const AROUND: usize = 64 << 20;
/// A worker is replaced after it has grown by this many bytes.
const GROWN: usize = 48 << 20;
/// Requests after which a worker is replaced.
const REQUESTS: u32 = 2000;
/// Exit status of a worker that could not be confined.
const NOT_CONFINED: u8 = 70;

/// Runs a worker until the requests end or the service is gone. Call it first in `main` if the first argument
/// is [`crate::WORKER_ARGUMENT`].
#[must_use]
pub fn work() -> ExitCode {
    if confine::before_threads().is_err() {
        return ExitCode::from(NOT_CONFINED);
    }
    memory::arm();
    let (begin, begun) = mpsc::channel::<Size>();
    let (up, is_up) = mpsc::channel();
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let _ = up.send(());
        if let Ok(size) = begun.recv() {
            serve(&mut std::io::stdin(), &mut std::io::stdout(), &size);
        }
        std::process::exit(0);
    });
    let Ok(size) = Size::open() else { return ExitCode::from(NOT_CONFINED) };
    // A starting thread needs more system calls than a running one.
    if serving.is_err()
        || is_up.recv().is_err()
        || confine::with_threads().is_err()
        || begin.send(size).is_err()
    {
        return ExitCode::from(NOT_CONFINED);
    }
    until_alone();
    ExitCode::SUCCESS
}

/// Waits until the service is gone, whatever the code does meanwhile.
fn until_alone() {
    let input = std::io::stdin();
    loop {
        // Without requested events, `poll` returns only when the other end is closed.
        let mut ends = [PollFd::new(&input, PollFlags::empty())];
        match poll(&mut ends, None) {
            Ok(_) => return,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn serve(requests: &mut Stdin, answers: &mut Stdout, size: &Size) {
    if frame::write(answers, READY).is_err() {
        return;
    }
    let fresh = size.now();
    let mut count = 0;
    while let Ok(Some(bytes)) = frame::read(requests, LONGEST_REQUEST) {
        count += 1;
        let answer = match serde_json::from_slice::<WorkerRequest>(&bytes) {
            Ok(request) => {
                drop(bytes);
                memory::allow(request.memory.saturating_add(AROUND));
                perform(request)
            }
            Err(error) => WorkerAnswer::failed(format!("the request cannot be read: {error}")),
        };
        let spent = count >= REQUESTS || size.now().saturating_sub(fresh) > GROWN;
        let Ok(bytes) = serde_json::to_vec(&Response { answer, spent }) else { return };
        memory::lift();
        if frame::write(answers, &bytes).is_err() {
            return;
        }
    }
}

fn perform(request: WorkerRequest) -> WorkerAnswer {
    let WorkerRequest { task, modules, memory, output, logs } = request;
    match task {
        Task::Echo { args } => WorkerAnswer::Value { value: args, logs: String::new() },
        Task::Document { kind, data, limits } => document::read(kind, data, limits),
        Task::Feed { data, from, limits } => document::read_feed(data, from, limits),
        Task::Image { kind, data, limits } => image::read(kind, data, limits),
        Task::Call { language: Language::Python, entry, args } => {
            python::call(&entry, &modules, &args, python::Bounds { memory, output, logs })
        }
        Task::Call { language: Language::Javascript, entry, args } => {
            javascript::call(entry, modules, &args, javascript::Bounds { memory, output, logs })
        }
        Task::Survey { language: Language::Python, source } => python::survey(&source, &modules),
        Task::Survey { language: Language::Javascript, source } => {
            javascript::survey(source, modules, javascript::Bounds { memory, output, logs })
        }
    }
}
