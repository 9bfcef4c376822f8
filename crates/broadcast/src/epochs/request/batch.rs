//! What a command of the broadcast says: requests of a member that are ordered as one.

use std::sync::Arc;

use muesli_core::bytes::SmallBytes;
use muesli_core::wire::Wire;
use muesli_core::{wire_enum, wire_struct};

use crate::command::{Command, CommandId};
use crate::epochs::list::MemberChange;
use crate::objects::ObjectSet;

/// So many requests are ordered as one at most.
pub(in crate::epochs) const REQUESTS_MOST: usize = 4_096;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::epochs) enum RequestContent {
    /// The user's command says this.
    Command(SmallBytes),
    /// A member is to be exchanged.
    Change(MemberChange),
}

/// A request of this member that was not delivered yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::epochs) struct OwnRequest {
    /// As its user gave it; that of a change touches everything, and says nothing.
    pub command: Command,
    /// What it changes, if it is none of the user.
    pub change: Option<MemberChange>,
}

impl OwnRequest {
    pub fn change(change: MemberChange) -> OwnRequest {
        let objects = Arc::new(ObjectSet::everything());
        let command = Command { objects, payload: SmallBytes::EMPTY };
        OwnRequest { command, change: Some(change) }
    }

    /// What it says, among others or by itself.
    pub fn content(&self) -> RequestContent {
        match self.change {
            Some(change) => RequestContent::Change(change),
            None => RequestContent::Command(self.command.payload.clone()),
        }
    }
}

/// A request, as it is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::epochs) struct OrderedRequest {
    pub sequence: u64,
    /// What it touches; `None`: it is alone, and touches what its command touches.
    pub objects: Option<Arc<ObjectSet>>,
    pub content: RequestContent,
}

/// Requests that are ordered as one, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::epochs) struct RequestBatch {
    pub requests: Vec<OrderedRequest>,
}

impl RequestBatch {
    /// What a command of a member stands for. A member that lies may send anything: what cannot be,
    /// or touches something else than its command, stands for nothing, at all members alike.
    pub fn of(command: &Command) -> RequestBatch {
        let decoded = RequestBatch::decode_all(command.payload.as_slice()).ok();
        let mut batch = decoded.filter(|it| it.is_sound(command)).unwrap_or_default();
        if let [only] = batch.requests.as_mut_slice() {
            only.objects = Some(Arc::clone(&command.objects));
        }
        batch
    }

    /// The command that stands for some requests.
    pub fn command<'a>(
        all: impl ExactSizeIterator<Item = (u64, &'a OwnRequest)> + Clone,
    ) -> Command {
        let is_alone = all.len() == 1;
        let ordered = |(sequence, own): (u64, &OwnRequest)| {
            let objects = (!is_alone).then(|| Arc::clone(&own.command.objects));
            OrderedRequest { sequence, objects, content: own.content() }
        };
        let objects = match all.clone().next() {
            Some((_, only)) if is_alone => Arc::clone(&only.command.objects),
            _ => {
                let each = all.clone().flat_map(|(_, own)| own.command.objects.iter());
                ObjectSet::new(each).into()
            }
        };
        let mut payload = Vec::new();
        RequestBatch { requests: all.map(ordered).collect() }.encode(&mut payload);
        Command { objects, payload: payload.into() }
    }

    /// Whether it can be, as a command that touches that.
    fn is_sound(&self, command: &Command) -> bool {
        let numbers = || self.requests.iter().map(|it| it.sequence);
        let are_ascending = numbers().zip(numbers().skip(1)).all(|(a, b)| a < b);
        let are_numbers = numbers().all(|it| (1..=CommandId::SEQUENCE_MAX).contains(&it));
        let fits = match self.requests.as_slice() {
            [] => false,
            many if many.len() > REQUESTS_MOST => false,
            [only] => only.objects.is_none(),
            several => several.iter().all(OrderedRequest::is_for_batches),
        };
        let touches_the_same = || {
            let each = self.requests.iter().filter_map(|it| it.objects.as_deref());
            ObjectSet::new(each.flat_map(ObjectSet::iter)) == *command.objects
        };
        are_ascending && are_numbers && fits && (self.requests.len() == 1 || touches_the_same())
    }

    /// Its requests, as their member has them.
    pub fn own(self) -> impl Iterator<Item = (u64, OwnRequest)> {
        self.requests.into_iter().map(|OrderedRequest { sequence, objects, content }| {
            let request = match content {
                RequestContent::Change(change) => OwnRequest::change(change),
                RequestContent::Command(payload) => {
                    let objects = objects.unwrap_or_default();
                    OwnRequest { command: Command { objects, payload }, change: None }
                }
            };
            (sequence, request)
        })
    }
}

impl OrderedRequest {
    fn is_for_batches(&self) -> bool {
        let is_of_user = matches!(self.content, RequestContent::Command(_));
        is_of_user && self.objects.as_ref().is_some_and(|it| !it.is_everything())
    }
}

wire_struct!(OwnRequest { command: Command, change: Option<MemberChange> });
wire_struct!(OrderedRequest {
    sequence: u64,
    objects: Option<Arc<ObjectSet>>,
    content: RequestContent,
});
wire_struct!(RequestBatch { requests: Vec<OrderedRequest> });
wire_enum!(RequestContent, "request" {
    0 => Command(payload: SmallBytes),
    1 => Change(change: MemberChange),
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epochs::list::MemberName;

    fn request(objects: &[u64]) -> OwnRequest {
        let objects = ObjectSet::writes(objects.iter().copied()).into();
        let command = Command { objects, payload: [7_u8, 2].as_slice().into() };
        OwnRequest { command, change: None }
    }

    fn command(requests: &[(u64, OwnRequest)]) -> Command {
        RequestBatch::command(requests.iter().map(|(sequence, own)| (*sequence, own)))
    }

    #[test]
    fn requests_that_are_ordered_as_one_come_back_as_they_were() {
        let three = vec![(4, request(&[1])), (9, request(&[1, 3])), (10, request(&[2]))];
        for (several, touched) in [(vec![(4, request(&[1, 2]))], 2), (three, 3)] {
            let command = command(&several);
            assert_eq!(command.objects.len(), touched);
            let own: Vec<_> = RequestBatch::of(&command).own().collect();
            assert_eq!(own, several);
        }
        let joins = MemberChange { leaves: MemberName(1), joins: MemberName(7) };
        let change = vec![(3, OwnRequest::change(joins))];
        let own: Vec<_> = RequestBatch::of(&command(&change)).own().collect();
        assert_eq!(own, change);
    }

    #[test]
    fn what_cannot_have_been_asked_for_stands_for_nothing() {
        let two = [(4, request(&[1])), (5, request(&[2]))];
        let joins = MemberChange { leaves: MemberName(1), joins: MemberName(7) };
        let everything = ObjectSet::everything;
        let mut all = request(&[1]);
        all.command.objects = everything().into();
        let unsound = [
            command(&[]),
            command(&[(0, request(&[1]))]),
            command(&[(CommandId::SEQUENCE_MAX + 1, request(&[1]))]),
            command(&[two[1].clone(), two[0].clone()]),
            command(&[two[1].clone(), two[1].clone()]),
            command(&[two[0].clone(), (5, all)]),
            command(&[two[0].clone(), (5, OwnRequest::change(joins))]),
            Command { objects: ObjectSet::writes([1]).into(), ..command(&two) },
            Command { objects: everything().into(), ..command(&two) },
            Command { payload: [3_u8; 9].as_slice().into(), ..command(&two) },
        ];
        for it in unsound {
            assert_eq!(RequestBatch::of(&it), RequestBatch::default(), "{it:?}");
        }
        assert_eq!(RequestBatch::of(&command(&two)).requests.len(), 2);
    }
}
