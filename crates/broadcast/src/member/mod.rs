//! What members of all broadcasts keep beside their protocol.

pub(crate) mod checkpoint;
pub(crate) mod due_times;
pub(crate) mod judge;
pub(crate) mod led;
pub(crate) mod own;

use crate::command::MemberId;

/// That a group of so many members can have this one.
///
/// # Panics
/// It cannot.
pub(crate) fn assert_is_of(me: MemberId, members: usize) {
    assert!(me.place() < members, "member {} of {members}", me.0);
    assert!(members <= MemberId::MOST, "{members} members are too many");
}

/// What each broadcast does alike that has its own commands in `own`, what members have delivered
/// in `progress`, and an `apply` of records.
macro_rules! members_alike {
    () => {
        fn proposed(&self) -> impl Iterator<Item = (CommandId, &Command)> {
            self.own.open()
        }

        fn proposed_command(&self, id: CommandId) -> Option<&Command> {
            self.own.get(id)
        }

        fn is_behind(&self) -> bool {
            self.progress.is_behind()
        }

        fn has_forgotten(&self, id: CommandId) -> bool {
            self.progress.is_collected(id)
        }

        fn replay(&mut self, record: Self::Record, out: &mut Effects) {
            self.apply(record, out);
        }

        fn checkpoint(&self) -> impl Iterator<Item = Vec<u8>> {
            $crate::member::checkpoint::pieces_of(self)
        }

        fn restore(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
            $crate::member::checkpoint::take_piece(self, piece, now)
        }
    };
}

pub(crate) use members_alike;
