//! What the benches share: the events of a turn, the raw file everything is compared with, and the
//! table of ratios.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::Criterion;

/// A directory on the disk that builds are on: a temporary directory may be in memory.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// An event of about 400 bytes of JSON.
pub fn event(session: u64, seq: u64) -> Vec<u8> {
    let mixed = (session << 20 | seq).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = ["turn", "call", "weather", "Lisbon", "reply", "tool", "message", "result"];
    let mut text = String::new();
    for place in 0..40 {
        text.push_str(words[usize::try_from(mixed.rotate_left(place) & 7).unwrap()]);
        text.push(' ');
    }
    let mut event = format!(
        r#"{{"type":"message.added","session":"session-{session:012}","seq":{seq},"id":"{mixed:016x}","content":"{text}"}}"#
    );
    event.truncate(400);
    event.into_bytes()
}

/// Append and sync of a plain file: the least that any durable log has to do.
pub struct Raw(File);

impl Raw {
    pub fn new(dir: &Path) -> Self {
        Self(File::create(dir.join("raw")).unwrap())
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
        self.0.sync_data().unwrap();
    }
}

/// Something that is measured: one step, which measures itself so that its preparation does not
/// count, and what is done after a stretch of steps, so that nothing of it goes on beside the next.
pub struct Candidate<'a> {
    name: &'static str,
    step: Box<dyn FnMut() -> Duration + 'a>,
    pub rest: Box<dyn FnMut() + 'a>,
}

impl<'a> Candidate<'a> {
    pub fn new<I>(
        name: &'static str,
        mut prepare: impl FnMut() -> I + 'a,
        mut work: impl FnMut(I) + 'a,
    ) -> Self {
        let step = move || {
            let input = prepare();
            let start = Instant::now();
            work(input);
            start.elapsed()
        };
        Self { name, step: Box::new(step), rest: Box::new(|| {}) }
    }
}

/// Measures the candidates in turns, a stretch each, so that whatever else the machine does meets
/// them all; prints their times as multiples of the first one's; then lets criterion, which
/// measures one after the other, look for changes since its last run.
pub fn compare(criterion: &mut Criterion, title: &str, mut candidates: Vec<Candidate>) {
    const STRETCHES: usize = 12;
    const STRETCH: Duration = Duration::from_millis(250);
    let mut samples = vec![Vec::new(); candidates.len()];
    for _ in 0..STRETCHES {
        for (candidate, samples) in candidates.iter_mut().zip(&mut samples) {
            let start = Instant::now();
            while start.elapsed() < STRETCH {
                samples.push((candidate.step)().as_secs_f64());
            }
            (candidate.rest)();
        }
    }
    let times: Vec<(f64, f64)> =
        samples.iter_mut().map(|samples| median_and_mean(samples)).collect();
    println!("\n{title}: median (mean) time as a multiple of the first");
    for (candidate, (median, mean)) in candidates.iter().zip(&times) {
        let (first_median, first_mean) = times[0];
        let (median, mean) = (median / first_median, mean / first_mean);
        println!("  {:<40}{median:>6.2} ({mean:.2})", candidate.name);
    }
    println!();

    let mut group = criterion.benchmark_group(title);
    for candidate in &mut candidates {
        group.bench_function(candidate.name, |bencher| {
            bencher.iter_custom(|iterations| (0..iterations).map(|_| (candidate.step)()).sum());
        });
        (candidate.rest)();
    }
    group.finish();
}

fn median_and_mean(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    let count: f64 = samples.iter().map(|_| 1.0).sum();
    (samples[samples.len() / 2], samples.iter().sum::<f64>() / count)
}

pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args()
}
