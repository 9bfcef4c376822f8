//! A write-ahead log with group commit, and the checkpoints beside it.
//!
//! # The problem
//! What a node has promised must survive the loss of its power at any moment. A sync of a disk
//! takes as long as a thousand transactions, it may fail, and what was written and not synced may
//! be on the disk in any part and any order.
//!
//! # The idea
//! Records get consecutive [sequence numbers](Sequence) and are gathered in a [batch](Batch).
//! One write and one sync make a batch stable, while the next one gathers: batches grow with load
//! by themselves. The log is a row of [segments](format::segment); each batch begins with a
//! *mark* that
//! says up to where the log was stable when the batch was written. A [checkpoint] holds the state
//! after some record, and the segments before it go.
//!
//! # Why what is read back is right
//! Each frame carries a checksum of itself, salted by its segment, and the checksum of the frame
//! before it. So a frame that is accepted is the one that followed its predecessor when both were
//! written: neither a block of an earlier use of the disk nor one of an earlier life, beyond
//! where the log was cut, is taken for a record.
//!
//! A batch is written only after the one before it was synced. So if the first bad frame is
//! followed by a mark that claims it stable, or by a segment, the disk has lost what it had
//! promised: that is *damage*, and is refused. Otherwise the bad frame belongs to the last batch,
//! nobody was told of it, unless the damage is in that batch itself, which nothing can tell: it
//! is a *torn tail*, cut and reported. A log that was closed ends with a mark, so that all of its
//! records are claimed.
//!
//! After a failed sync the operating system may hold pages for clean that never reached the disk.
//! So the log is [failed](LogError) for good then: nothing more is reported stable, and only a new
//! start, which reads what is really there, goes on.
//!
//! # Layout
//! [`Log`] is the log as a loop uses it, with a thread that syncs; [`Writer`] is what that thread
//! runs, for callers with a thread of their own; [`open()`] is start-up, [`read()`] the same for
//! whoever changes nothing; [`repair`] is for people whose disk has lied. [`checkpoint`] has the
//! files of checkpoints, and [`CheckpointStream`] writes one beside a running loop.
//! [`mod@format`] is how a file of the log looks and is read back. [`Disk`] is what all of it
//! stands on: a [`Directory`], a [`ReadingDirectory`], in which nothing can be changed, or the
//! faulty [`MemoryDisk`] of the tests.

pub mod background;
pub mod batch;
pub mod checkpoint;
pub mod disk;
pub mod error;
pub mod format;
pub mod open;
pub mod repair;
pub mod sequence;
pub mod writer;

pub use background::Log;
pub use batch::Batch;
pub use checkpoint::streaming::CheckpointStream;
pub use checkpoint::{CheckpointWriter, Published};
pub use disk::directory::Directory;
pub use disk::memory::MemoryDisk;
pub use disk::reading::ReadingDirectory;
pub use disk::{Disk, DiskFile};
pub use error::LogError;
pub use open::{Cut, Opened, Progress, Replay, open, read};
pub use sequence::Sequence;
pub use writer::{Options, Writer};
