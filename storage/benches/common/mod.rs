//! What the benches share: the events of a turn, the raw file everything is compared with, and the table of ratios.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use criterion::BenchmarkGroup;
use criterion::measurement::WallTime;

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

/// Collects the samples of each candidate and prints medians as ratios.
#[derive(Default)]
pub struct Ratios {
    samples: BTreeMap<(String, usize), Vec<f64>>,
    order: Vec<String>,
}

impl Ratios {
    /// Measures `work` on what `prepare` makes, which is not measured.
    pub fn measure<I>(
        &mut self,
        group: &mut BenchmarkGroup<'_, WallTime>,
        name: &str,
        size: usize,
        mut prepare: impl FnMut() -> I,
        mut work: impl FnMut(I),
    ) {
        if !self.order.iter().any(|known| known == name) {
            self.order.push(name.to_owned());
        }
        let samples = self.samples.entry((name.to_owned(), size)).or_default();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut total = Duration::ZERO;
                for _ in 0..iterations {
                    let input = prepare();
                    let start = std::time::Instant::now();
                    work(input);
                    let took = start.elapsed();
                    samples.push(took.as_secs_f64());
                    total += took;
                }
                total
            });
        });
    }

    /// The median and the mean time of each candidate over those of `base`, for each size.
    pub fn print(&mut self, title: &str, base: &str, sizes: &[usize]) {
        println!("\n{title}: median (mean) time, as a multiple of {base}");
        print!("{:<40}", "");
        for size in sizes {
            print!("{size:>15}");
        }
        println!();
        for name in self.order.clone() {
            print!("{name:<40}");
            for size in sizes {
                match (self.times(&name, *size), self.times(base, *size)) {
                    (Some((median, mean)), Some((base_median, base_mean))) => {
                        print!("{:>8.2} ({:.2})", median / base_median, mean / base_mean);
                    }
                    _ => print!("{:>15}", "-"),
                }
            }
            println!();
        }
    }

    /// The median and the mean.
    fn times(&mut self, name: &str, size: usize) -> Option<(f64, f64)> {
        let samples = self.samples.get_mut(&(name.to_owned(), size))?;
        samples.sort_by(f64::total_cmp);
        let mean = samples.iter().sum::<f64>() / samples.iter().map(|_| 1.0).sum::<f64>();
        samples.get(samples.len() / 2).map(|median| (*median, mean))
    }
}
