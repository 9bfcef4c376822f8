//! A reader that keeps what it is given, and records that can be told apart.

use muesli_log::{Batch, MemoryDisk, Opened, Options, Progress, Replay, Sequence, Writer, open};

/// What a replay gave out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub pieces: Vec<Vec<u8>>,
    pub records: Vec<(u64, u8, Vec<u8>)>,
    pub progress: Vec<Progress>,
}

impl Replay for Kept {
    fn piece(&mut self, piece: &[u8]) -> Result<(), String> {
        self.pieces.push(piece.to_vec());
        Ok(())
    }

    fn record(&mut self, sequence: Sequence, kind: u8, payload: &[u8]) -> Result<(), String> {
        self.records.push((sequence.0, kind, payload.to_vec()));
        Ok(())
    }

    fn progress(&mut self, progress: Progress) {
        self.progress.push(progress);
    }
}

pub const SMALL: Options = Options {
    owner: 7,
    segment_bytes: 700,
    preallocate_bytes: 300,
    backlog_bytes: 1 << 20,
    checkpoints: 2,
};

/// What the record of this number holds in a life of the log.
pub fn payload(incarnation: u8, sequence: u64) -> Vec<u8> {
    let length = (sequence * 37 % 90) as usize;
    let mut bytes = vec![incarnation; length];
    bytes.extend_from_slice(&sequence.to_le_bytes());
    bytes
}

/// Appends so many records after `last`.
pub fn batch(incarnation: u8, last: Sequence, records: u64) -> Batch {
    let mut batch = Batch::after(last);
    for _ in 0..records {
        let bytes = payload(incarnation, batch.last().0 + 1);
        batch.append(1 + incarnation % 200, |out| out.extend_from_slice(&bytes)).expect("short");
    }
    batch
}

pub type Opening = (Writer<MemoryDisk>, Opened, Kept);

pub fn reopen(disk: &MemoryDisk) -> Result<Opening, muesli_log::LogError> {
    let mut kept = Kept::default();
    let (writer, opened) = open(disk.clone(), SMALL, &mut kept)?;
    Ok((writer, opened, kept))
}
