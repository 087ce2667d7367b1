//! The sizes for `cargo xtask bench streams`.

/// Numbers of streams, readers and turns to measure.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Sizes {
    /// The larger number of idle streams; a tenth of it is also measured.
    #[arg(long, default_value_t = 10_000)]
    pub(super) idle: usize,
    /// Total readers of running streams.
    #[arg(long, default_value_t = 5_000)]
    pub(super) readers: usize,
    /// Turns that write 20 pieces a second each; the readers are distributed over them.
    #[arg(long, default_value_t = 100)]
    pub(super) turns: usize,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 15)]
    pub(super) seconds: u64,
}

impl Sizes {
    /// The command-line arguments for the measuring program.
    pub(super) fn arguments(self) -> Vec<String> {
        let pairs = [
            ("--idle", self.idle.to_string()),
            ("--readers", self.readers.to_string()),
            ("--turns", self.turns.to_string()),
            ("--seconds", self.seconds.to_string()),
        ];
        pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}
