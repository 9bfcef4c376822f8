//! What a role says that does without a part of the contract.
//!
//! The contract has no defaults: a role that forgot something would be wrong silently. One that
//! does without says so by a line of its own.

/// Inside an `impl StateMachine<$protocol>`: links that come and go change nothing.
#[macro_export]
macro_rules! role_without_links {
    ($protocol:ty) => {
        fn linked(&mut self, _: $crate::NodeId, _: &mut $crate::Context<'_, $protocol>) {}

        fn unlinked(&mut self, _: $crate::NodeId, _: &mut $crate::Context<'_, $protocol>) {}
    };
}

/// Inside an `impl Coordinator<$protocol>`: nothing is to be told as the node leaves, and no
/// session brings or takes what it has seen elsewhere.
#[macro_export]
macro_rules! coordinator_without_sessions {
    ($protocol:ty) => {
        fn leave(&mut self, _: &mut $crate::Context<'_, $protocol>) {}

        fn session_token(&self) -> Option<$crate::SmallBytes> {
            None
        }

        fn adopt(&mut self, _: &$crate::SmallBytes) {}
    };
}

/// Inside an `impl Coordinator<$protocol>`: every read goes the way of all operations.
#[macro_export]
macro_rules! coordinator_without_peeks {
    ($protocol:ty) => {
        fn peek(
            &mut self,
            _: $crate::Txn,
            _: $crate::SpaceId,
            _: &[$crate::SmallBytes],
            _: $crate::Here<'_, $protocol>,
            _: &mut $crate::Context<'_, $protocol>,
            _: &mut [Option<$crate::SmallBytes>],
        ) -> bool {
            false
        }
    };
}

/// Inside an `impl StateMachine<$protocol>`: whatever the protocol's own judgement lets through is
/// taken, and no timestamps are issued here.
#[macro_export]
macro_rules! role_without_judgement {
    ($protocol:ty) => {
        fn judge(
            &self,
            _: &<$protocol as $crate::Protocol>::Message,
            _: $crate::View<'_>,
        ) -> Result<(), $crate::Rejection> {
            Ok(())
        }

        fn issued(&self) -> $crate::Timestamp {
            $crate::Timestamp::ZERO
        }
    };
}

/// Inside an `impl LoggedRole<$protocol>`: it has no checkpoints, so that a node keeps its whole
/// log.
#[macro_export]
macro_rules! role_without_checkpoints {
    ($protocol:ty) => {
        $crate::role_with_empty_checkpoints!($protocol, None, $crate::Readiness::Void);
    };
}

/// Inside an `impl LoggedRole<$protocol>` of a role that is
/// [`CopiedAtOnce`](crate::checkpoint::CopiedAtOnce): its checkpoints.
#[macro_export]
macro_rules! role_copied_at_once {
    ($protocol:ty) => {
        fn begin_checkpoint(&self) -> Option<$crate::Cursor> {
            Some($crate::checkpoint::copy_of(self))
        }

        fn checkpoint_piece(
            &self,
            cursor: &mut $crate::Cursor,
            _: usize,
            out: &mut Vec<u8>,
        ) -> bool {
            let next = cursor.first.pop_front();
            next.map(|mut piece| out.append(&mut piece)).is_some()
        }

        fn checkpoint_readiness(&self, _: &$crate::Cursor) -> $crate::Readiness {
            $crate::Readiness::Ready
        }

        fn restore(
            &mut self,
            piece: &[u8],
            _: &mut $crate::Context<'_, $protocol>,
        ) -> Result<(), $crate::WireError> {
            $crate::checkpoint::take_copy(self, piece)
        }
    };
}

/// Inside an `impl LoggedRole<$protocol>`: how its checkpoints begin and end; they have no pieces.
#[doc(hidden)]
#[macro_export]
macro_rules! role_with_empty_checkpoints {
    ($protocol:ty, $begun:expr, $readiness:expr) => {
        fn begin_checkpoint(&self) -> Option<$crate::Cursor> {
            $begun
        }

        fn checkpoint_piece(&self, _: &mut $crate::Cursor, _: usize, _: &mut Vec<u8>) -> bool {
            false
        }

        fn checkpoint_readiness(&self, _: &$crate::Cursor) -> $crate::Readiness {
            $readiness
        }

        fn restore(
            &mut self,
            _: &[u8],
            _: &mut $crate::Context<'_, $protocol>,
        ) -> Result<(), $crate::WireError> {
            Err($crate::WireError::Variant { what: "piece: the role has none", at: 0, found: 0 })
        }
    };
}

/// Inside an `impl Participant<$protocol>`: it returns to no mark.
#[macro_export]
macro_rules! participant_without_marks {
    ($protocol:ty) => {
        fn mark(&mut self) -> Option<std::collections::VecDeque<Vec<u8>>> {
            None
        }

        fn forget_mark(&mut self) {}

        fn go_back(
            &mut self,
            _: &mut Self,
            _: std::collections::VecDeque<Vec<u8>>,
            _: &mut $crate::Context<'_, $protocol>,
        ) -> bool {
            false
        }
    };
}

/// Inside an `impl LoggedRole<$protocol>`: it logs nothing, and begins every incarnation with
/// nothing.
#[macro_export]
macro_rules! role_without_records {
    ($protocol:ty) => {
        fn replay(
            &mut self,
            _: <$protocol as $crate::Protocol>::Record,
            _: &mut $crate::Context<'_, $protocol>,
        ) {
        }

        $crate::role_with_empty_checkpoints!(
            $protocol,
            Some($crate::Cursor::default()),
            $crate::Readiness::Ready
        );
    };
}

/// Inside an `impl Protocol`: its timestamps follow no clock, it keeps no old versions and no
/// copies of repositories that live elsewhere, has no masters, nothing that strangers are to say,
/// and no messages for all or any of the nodes that keep a copy.
#[macro_export]
macro_rules! protocol_without_extras {
    () => {
        const TIMESTAMP_STEP: Option<$crate::Nanos> = None;
        const KEEPS_OLD_VERSIONS: bool = false;
        const KEEPS_COPIES: bool = false;

        fn has_masters(_: &Self::Switches) -> bool {
            false
        }

        fn is_for_all(_: &Self::Message) -> bool {
            false
        }

        fn is_for_any(_: &Self::Message) -> bool {
            false
        }

        fn as_client(_: &Self::Message, _: $crate::NodeId) -> Option<Self::Message> {
            None
        }
    };
}

/// Inside an `impl Protocol` whose messages are a [`wire_enum`](crate::wire_enum): its messages and
/// records count as long as they are encoded.
#[macro_export]
macro_rules! protocol_measured_by_encoding {
    () => {
        fn wire_bytes(message: &Self::Message) -> usize {
            $crate::wire::encoded_bytes(message)
        }

        fn record_bytes(record: &Self::Record) -> usize {
            $crate::wire::encoded_bytes(record)
        }

        fn message_name(message: &Self::Message) -> &'static str {
            message.name()
        }
    };
}

/// Inside an `impl Coordinator<$protocol>`: it remembers no outcomes, and nobody holds old versions
/// back.
#[macro_export]
macro_rules! coordinator_without_memory {
    () => {
        fn oldest_snapshot(&self) -> Option<($crate::NodeId, Option<$crate::Nanos>)> {
            None
        }

        fn outcome(&self, _: $crate::TxnId) -> $crate::Outcome {
            $crate::Outcome::NotKnown($crate::Doubt::Forgotten)
        }
    };
}

/// Inside an `impl Participant<$protocol>`: it answers no readers from behind, reports nothing of
/// memory, and takes any record.
#[macro_export]
macro_rules! participant_without_readers {
    ($protocol:ty) => {
        fn judge_record(
            &self,
            _: &<$protocol as $crate::Protocol>::Record,
            _: &$crate::Catalog,
        ) -> Result<(), $crate::Rejection> {
            Ok(())
        }

        fn answer_behind(
            &mut self,
            _: &<$protocol as $crate::Protocol>::Message,
            _: &mut $crate::Context<'_, $protocol>,
        ) -> bool {
            false
        }

        fn end(&mut self, _: &$crate::Settings) {}
    };
}

/// Inside an `impl Participant<$protocol>`: nobody counts the rows of its partitions, as they do
/// not move.
#[macro_export]
macro_rules! participant_without_sizes {
    () => {
        fn add_sizes(
            &self,
            _: &mut $crate::recorder::partition_sizes::SizeCursor,
            _: &mut $crate::recorder::partition_sizes::PartitionSizes,
            _: &$crate::Catalog,
        ) -> bool {
            false
        }
    };
}

/// Inside an `impl Protocol`: it has no services.
#[macro_export]
macro_rules! protocol_without_services {
    () => {
        type Service = $crate::NoService;

        fn services(
            _: &Self::Switches,
            _: $crate::NodeId,
            _: &$crate::Catalog,
        ) -> Vec<$crate::ServiceId> {
            Vec::new()
        }
    };
}

/// Inside an `impl LoggedRole<$protocol>`: whatever moves, it stays as it is.
#[macro_export]
macro_rules! role_that_stays {
    ($protocol:ty) => {
        fn placed(&mut self, _: &mut $crate::Context<'_, $protocol>) {}
    };
}

/// Inside an `impl Participant`: one node keeps it, and it judges no records of others. A group may
/// keep it all the same, whose members do this for it.
#[macro_export]
macro_rules! participant_kept_by_one_node {
    () => {
        fn rejections(&self) -> Option<&$crate::Rejections> {
            None
        }

        fn lag(&self) -> Option<$crate::Lag> {
            None
        }

        fn replica_role(&self) -> $crate::ReplicaRole {
            $crate::ReplicaRole::Alone
        }
    };
}
