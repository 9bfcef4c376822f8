//! Whether delayed actions were done once, and everywhere: what no reader need have noticed.

use super::World;
use super::client::{Client, Do, SPACE};
use crate::harness::subject::Subject;

impl<P: Subject> World<P> {
    /// At the end: every repository with a key that was only appended to has the name of each
    /// transaction that committed exactly as often as that appended it, and of no other.
    pub(super) fn judge_delayed(&self) -> Result<(), String> {
        for client in &self.clients {
            self.judge_results(client)?;
            for key in client.delays().filter(|key| !self.is_put(key)) {
                let each = usize::from(client.has_committed());
                for (repository, value) in self.values(key) {
                    let times = value.matches(client.name()).count();
                    if times != each && !client.is_lost() {
                        let name = client.name();
                        return Err(format!(
                            "{repository}: {key} has {name} {times} times: {value}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// What a client was told that its actions left is how what is there now begins: values only
    /// grow.
    fn judge_results(&self, client: &Client) -> Result<(), String> {
        let results = client.answers_to_client.iter().flat_map(|all| all.split('/'));
        for (key, result) in client.asks().zip(results).filter(|(key, _)| !self.is_put(key)) {
            let is_begin = |(_, value): &(String, String)| value.starts_with(result);
            if !result.ends_with(client.name()) || !self.values(key).iter().all(is_begin) {
                return Err(format!("{} was told that it left {result} at {key}", client.name()));
            }
        }
        Ok(())
    }

    fn is_put(&self, key: &str) -> bool {
        self.clients.iter().any(|client| {
            client.does(&|it| matches!(it, Do::Put(at) | Do::Delete(at) if *at == key))
        })
    }

    /// A key's value at each repository that has it.
    fn values(&self, key: &str) -> Vec<(String, String)> {
        let participants = self.hosts.iter().flat_map(|host| host.node().participants());
        let holders = participants.filter_map(|(id, participant)| {
            let versions = P::versions(participant, SPACE)?;
            let newest = versions.newest(versions.find(&key.into())?);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let value = newest.value.map_or_else(String::new, |value| text(value.as_slice()));
            Some((format!("r{}", id.0), value))
        });
        holders.collect()
    }
}

impl Client {
    fn delays(&self) -> impl Iterator<Item = &'static str> + '_ {
        let plain = self.program().iter().filter_map(|operation| match operation {
            Do::Delay(key) => Some(*key),
            _ => None,
        });
        plain.chain(self.asks())
    }

    /// Keys that it delays something on and asks about, in the order in which it is told.
    fn asks(&self) -> impl Iterator<Item = &'static str> + '_ {
        let keys = self.program().iter().filter_map(|operation| match operation {
            Do::Ask(keys) | Do::Mark(keys) | Do::Alter(keys) => Some(*keys),
            _ => None,
        });
        keys.flat_map(|keys| keys.split(' '))
    }

    fn does(&self, wanted: &dyn Fn(&Do) -> bool) -> bool {
        self.program().iter().any(wanted)
    }
}
