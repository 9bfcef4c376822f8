//! The steps that lead from one world to others: which there are, and what each does.

use muesli_core::{Nanos, Settings};

use super::client::Client;
use super::lifetime::Host;
use super::scope::Fault;
use super::{Choice, Lost, PATIENCE, World, let_go};
use crate::harness::subject::Subject;

impl<P: Subject> World<P> {
    /// What can happen next; nothing, once every client has its answer and every message arrived.
    pub(super) fn choices(&self, reordered: bool) -> Vec<Choice> {
        let mut choices = Vec::new();
        let ready = self.clients.iter().enumerate().filter(|(_, client)| client.is_ready());
        choices.extend(ready.map(|(at, _)| Choice::Client(at)));
        for (&(from, to), link) in &self.links {
            let places = if reordered { link.len() } else { link.len().min(1) };
            choices.extend((0..places).map(|place| Choice::Deliver(from, to, place)));
        }
        for (host, at) in self.hosts.iter().zip(0..) {
            choices.extend(host.machine.waits_first_for().map(|_| Choice::Stable(at)));
            choices.extend(host.machine.has_left_over().then_some(Choice::GoesOn(at)));
        }
        let done = self.clients.iter().all(Client::is_done);
        let finished = done && self.hosts.iter().all(Host::has_no_doubts);
        if choices.is_empty() && !finished {
            self.choices_of_time(&mut choices);
        }
        if !done {
            self.ahead.iter().for_each(|fault| self.choices_of_fault(*fault, &mut choices));
        }
        choices
    }

    fn choices_of_fault(&self, fault: Fault, choices: &mut Vec<Choice>) {
        let links = self.links.keys();
        match fault {
            Fault::Crash(node) | Fault::Outage(node) => {
                choices.push(Choice::Crash(fault, node, Lost::Nothing));
                choices.push(Choice::Crash(fault, node, Lost::WhatItMay));
            }
            Fault::Early => {
                choices.extend(self.timers.iter().map(|it| Choice::Early(it.0, it.1, it.2)));
            }
            Fault::Lose => choices.extend(links.map(|link| Choice::Lose(link.0, link.1))),
            Fault::Repeat => choices.extend(links.map(|link| Choice::Repeat(link.0, link.1))),
        }
    }

    /// A fault has come.
    fn has_come(&mut self, fault: Fault) {
        let place = self.ahead.iter().position(|it| *it == fault);
        self.ahead.remove(place.expect("a fault that was to come"));
    }

    /// What can happen where only time can help.
    fn choices_of_time(&self, choices: &mut Vec<Choice>) {
        if self.fault.is_some() {
            choices.push(Choice::TimePasses);
            return;
        }
        assert!(!self.timers.is_empty(), "somebody waits, and for nothing");
        choices.extend(self.timers.iter().map(|t| Choice::WaitEnds(t.0, t.1, t.2)));
    }

    pub(super) fn take(&mut self, choice: Choice) {
        self.path.push(choice);
        match choice {
            Choice::Client(which) => {
                let client = &mut self.clients[which];
                let at = client.node;
                let machine = &mut self.hosts[at as usize].machine;
                machine.effects.now = self.now;
                client.step(&mut machine.node, &mut machine.effects);
                self.perform(at, |machine, outside| machine.perform(outside));
            }
            Choice::Deliver(from, to, place) => {
                let link = self.links.get_mut(&(from, to)).expect("a link with messages");
                let envelope = link.remove(place).expect("a message");
                self.perform(to, |machine, outside| {
                    machine.node.deliver(envelope, &mut machine.effects);
                    machine.perform(outside);
                });
            }
            Choice::Stable(node) => self.perform(node, |machine, outside| {
                let next = machine.waits_first_for();
                let_go(machine, next, outside);
            }),
            Choice::GoesOn(node) => self.perform(node, |machine, outside| {
                machine.go_on(outside);
            }),
            Choice::WaitEnds(node, role, timer) => {
                self.now = self.now + Settings::default().lock_wait;
                self.fire(node, role, timer);
            }
            Choice::Crash(fault, node, lost) => {
                self.has_come(fault);
                if matches!(fault, Fault::Outage(_)) {
                    self.links.retain(|(from, _), _| *from != node);
                }
                self.crash(node, lost);
            }
            Choice::Early(node, role, timer) => {
                self.has_come(Fault::Early);
                self.fire(node, role, timer);
            }
            Choice::Lose(from, to) | Choice::Repeat(from, to) => {
                let loses = choice == Choice::Lose(from, to);
                self.has_come(if loses { Fault::Lose } else { Fault::Repeat });
                let link = self.links.get_mut(&(from, to)).expect("a link with messages");
                let first = link.front().expect("a message").clone();
                if loses {
                    link.pop_front();
                } else {
                    link.push_back(first);
                }
                self.links.retain(|_, link| !link.is_empty());
            }
            Choice::TimePasses => {
                self.passed += 1;
                assert!(self.passed < PATIENCE, "nobody gets any further: {:?}", self.path);
                self.now = self.now + Settings::default().in_doubt_after + Nanos(1);
                for (node, role, timer) in self.timers_that_fire() {
                    self.fire(node, role, timer);
                }
            }
        }
    }
}
