//! Crash images: what a disk may hold after a power cut.
//!
//! Of each file everything up to its last sync is there, and of what was done later any part: whole
//! writes, pages of 4 KiB, sectors of 512 bytes, or a beginning that ends anywhere.

use turnd_storage::fault::{FileName, Image, Op};

use crate::kit::Random;

/// Walks forward over what was done to a disk, holding what is certainly durable.
pub struct Durable {
    base: Image,
    ops: Vec<Op>,
    /// The operations before this one were looked at.
    at: usize,
    unsynced: Vec<Op>,
}

impl Durable {
    pub fn new(base: Image, ops: Vec<Op>) -> Self {
        Self { base, ops, at: 0, unsynced: Vec::new() }
    }

    /// Moves on to just before operation `at`.
    pub fn advance(&mut self, at: usize) {
        for op in &self.ops[self.at..at] {
            match op {
                Op::Sync { file } => {
                    let synced = self.unsynced.extract_if(.., |op| file_of(op) == *file);
                    for op in synced {
                        self.base.apply(&op);
                    }
                }
                Op::Write { .. } | Op::SetLen { .. } => self.unsynced.push(op.clone()),
            }
        }
        self.at = at;
    }

    /// One of the images that a power cut here may leave.
    pub fn image(&self, random: &mut Random) -> Image {
        let mut image = self.base.clone();
        for file in [FileName::Journal, FileName::Archive] {
            let ops: Vec<&Op> = self.unsynced.iter().filter(|op| file_of(op) == file).collect();
            match random.below(5) {
                0 => apply_some(&mut image, &ops, usize::MAX, random),
                1 => apply_some(&mut image, &ops, 4096, random),
                2 => apply_some(&mut image, &ops, 512, random),
                3 => apply_prefix(&mut image, &ops, random),
                _ => ops.iter().for_each(|op| image.apply(op)),
            }
        }
        image
    }
}

fn file_of(op: &Op) -> FileName {
    match op {
        Op::Write { file, .. } | Op::SetLen { file, .. } | Op::Sync { file } => *file,
    }
}

/// Each piece of each write with a probability that is drawn once.
fn apply_some(image: &mut Image, ops: &[&Op], piece: usize, random: &mut Random) {
    let percent = random.below(101);
    for op in ops {
        match op {
            Op::Write { file, offset, data } => {
                let pieces = data.chunks(piece.min(data.len().max(1)));
                let mut offset = *offset;
                for piece in pieces {
                    if random.below(100) < percent {
                        image.apply(&Op::Write { file: *file, offset, data: piece.to_vec() });
                    }
                    offset += piece.len() as u64;
                }
            }
            Op::SetLen { .. } | Op::Sync { .. } => {
                if random.below(100) < percent {
                    image.apply(op);
                }
            }
        }
    }
}

/// The first operations, and of the next one its first bytes.
fn apply_prefix(image: &mut Image, ops: &[&Op], random: &mut Random) {
    let whole = random.index(ops.len() + 1);
    for op in &ops[..whole] {
        image.apply(op);
    }
    if let Some(Op::Write { file, offset, data }) = ops.get(whole) {
        let data = data[..random.index(data.len() + 1)].to_vec();
        image.apply(&Op::Write { file: *file, offset: *offset, data });
    }
}
