//! Operations of a node by name, with answers of their own types: for whoever knows what is asked.

use super::Node;
use crate::bytes::SmallBytes;
use crate::contract::{Answer, Deferral, Effects, Operation, Protocol, Put, Step};
use crate::delay::Delay;
use crate::ids::{SpaceId, Txn};
use crate::options::TxnOptions;
use crate::outcome::{Committed, Failure};
use crate::procedure::{Call, Invoked};
use crate::ranges::{Row, Scan};

impl<P: Protocol> Node<P> {
    /// [`Operation::Begin`].
    #[inline]
    pub fn begin(&mut self, options: TxnOptions, effects: &mut Effects<P>) -> Result<Txn, Failure> {
        self.operate(Operation::Begin(options), effects).map(Answer::begun).at_once()
    }

    /// [`Operation::Get`].
    #[inline]
    pub fn get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        effects: &mut Effects<P>,
    ) -> Step<Option<SmallBytes>> {
        self.operate(Operation::Get(txn, space, key.clone()), effects).map(Answer::value)
    }

    /// [`Operation::GetMany`].
    pub fn get_many(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        effects: &mut Effects<P>,
    ) -> Step<Vec<Option<SmallBytes>>> {
        self.operate(Operation::GetMany(txn, space, keys), effects).map(Answer::values)
    }

    /// [`Operation::Put`], of a client that waits for no lock.
    #[inline]
    pub fn put(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
        effects: &mut Effects<P>,
    ) -> Result<(), Failure> {
        let put = Put { space, key, value, may_wait: false };
        self.operate(Operation::Put(txn, put), effects).map(Answer::written).at_once()
    }

    /// [`Operation::Delay`].
    pub fn delay(
        &mut self,
        txn: Txn,
        delay: Delay,
        answered: bool,
        effects: &mut Effects<P>,
    ) -> Result<Deferral, Failure> {
        let step = self.operate(Operation::Delay(txn, delay, answered), effects);
        step.map(Answer::delayed).at_once()
    }

    /// [`Operation::Scan`].
    pub fn scan(&mut self, txn: Txn, scan: Scan, effects: &mut Effects<P>) -> Step<Vec<Row>> {
        self.operate(Operation::Scan(txn, scan), effects).map(Answer::rows)
    }

    /// [`Operation::Invoke`].
    pub fn invoke(
        &mut self,
        options: TxnOptions,
        call: Call,
        effects: &mut Effects<P>,
    ) -> Step<Invoked> {
        self.operate(Operation::Invoke(options, call), effects).map(Answer::invoked)
    }

    /// [`Operation::Commit`].
    #[inline]
    pub fn commit(&mut self, txn: Txn, effects: &mut Effects<P>) -> Step<Committed> {
        self.operate(Operation::Commit(txn), effects).map(Answer::committed)
    }

    /// [`Operation::rollback`].
    pub fn rollback(&mut self, txn: Txn, effects: &mut Effects<P>) {
        self.operate(Operation::rollback(txn), effects);
    }
}
