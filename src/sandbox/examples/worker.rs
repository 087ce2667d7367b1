//! A standalone worker, for sandbox development without a build of the whole service:
//! `CALLBOARD_BIN=target/debug/examples/worker cargo nextest run -p sandbox`.

#[global_allocator]
static ALLOCATOR: sandbox::Limiter<mimalloc::MiMalloc> = sandbox::Limiter::new(mimalloc::MiMalloc);

fn main() -> std::process::ExitCode {
    sandbox::work()
}
