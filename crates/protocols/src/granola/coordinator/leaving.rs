//! A client that ends in an orderly way.
//!
//! Repositories keep the ends of a client's transactions until one that follows says that they are
//! settled. A client that ends has no next one, so it sends each repository that may keep something
//! a transaction of no parts, which reads nothing, leaves nothing, and says it.

use std::sync::Arc;

use muesli_core::RepositoryId;

use super::{Context, Coordinator};
use crate::granola::message::{Few, Message, Request};

impl Coordinator {
    /// A client's request goes out: all who take part may keep its end.
    #[inline]
    pub(super) fn note_holders(&mut self, request: &Request, cx: &Context<'_>) {
        if cx.catalog.is_client(self.id) && !request.reads_alone() {
            self.took_part.extend(request.participants.iter().copied());
        }
    }

    /// Says what is settled, where anything may be kept.
    pub(super) fn tell_settled(&mut self, cx: &mut Context<'_>) {
        for repository in std::mem::take(&mut self.took_part) {
            let request = Arc::new(self.request_of_nothing(repository));
            cx.send_to_repository(repository, Message::Request(request));
        }
    }

    fn request_of_nothing(&mut self, repository: RepositoryId) -> Request {
        let settled_below = self.settled_below();
        assert!(settled_below <= self.sequence + 1, "{settled_below} was not given out");
        Request {
            settled_below,
            read_only: true,
            ..Request::new(self.next_txn_id(), [repository].into_iter().collect(), Few::new())
        }
    }
}
