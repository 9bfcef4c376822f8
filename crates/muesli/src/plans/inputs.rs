//! What closures of a plan are given: values that were declared, and nothing else; and values and
//! rows whose type is known again where they are used.

use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;

use muesli_core::{SmallBytes, Stop};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::nodes::{Erased, KeyOf, KeyPart, NodeId, PlanValue, TableRef};
use super::table::{KeyColumn, KeyColumns, PlanTable};

/// The declared inputs of a closure: none, one value, or a tuple of them.
pub trait Inputs {
    /// What the closure sees.
    type Values;
    #[doc(hidden)]
    fn nodes(&self) -> Vec<usize>;
    #[doc(hidden)]
    fn values(found: &[Erased]) -> Self::Values;
}

fn typed<T: Send + Sync + 'static>(value: &Erased) -> Arc<T> {
    Arc::clone(value).downcast().expect("values are of the types that they were declared with")
}

impl Inputs for () {
    type Values = ();

    fn nodes(&self) -> Vec<NodeId> {
        Vec::new()
    }

    fn values(_: &[Erased]) {}
}

impl<T: Send + Sync + 'static> Inputs for PlanValue<T> {
    type Values = Arc<T>;

    fn nodes(&self) -> Vec<NodeId> {
        vec![self.node]
    }

    fn values(found: &[Erased]) -> Arc<T> {
        typed(&found[0])
    }
}

macro_rules! inputs {
    ($($($input:ident $at:literal)+;)+) => {$(
        impl<$($input: Send + Sync + 'static),+> Inputs for ($(PlanValue<$input>,)+) {
            type Values = ($(Arc<$input>,)+);

            #[expect(non_snake_case, reason = "the values are named as their types")]
            fn nodes(&self) -> Vec<NodeId> {
                let ($($input,)+) = self;
                vec![$($input.node),+]
            }

            fn values(found: &[Erased]) -> Self::Values {
                ($(typed::<$input>(&found[$at]),)+)
            }
        }
    )+};
}

inputs! {
    A 0; A 0 B 1; A 0 B 1 C 2; A 0 B 1 C 2 D 3; A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
}

/// The values of a key's columns, or of its first ones.
pub trait KeyValues {
    /// The columns.
    type Columns: KeyColumns;
    #[doc(hidden)]
    fn parts(&self) -> Vec<EncodedValue>;
}

/// A value as a part of a key.
#[doc(hidden)]
pub struct EncodedValue(pub(super) KeyPart);

fn encode<T: KeyColumn>(value: &Erased, out: &mut Vec<u8>) {
    let value = value.downcast_ref::<T>().expect("values are of the types they were declared with");
    crate::Key::encode(value, out);
}

/// A value as a part of a key.
pub(super) fn part<T: KeyColumn>(value: PlanValue<T>) -> KeyPart {
    KeyPart { node: value.node, encode: encode::<T> }
}

macro_rules! keys {
    ($($($column:ident)+;)+) => {$(
        impl<$($column: KeyColumn),+> KeyValues for ($(PlanValue<$column>,)+) {
            type Columns = ($($column,)+);

            #[expect(non_snake_case, reason = "the values are named as their types")]
            fn parts(&self) -> Vec<EncodedValue> {
                let ($($column,)+) = self;
                vec![$(EncodedValue(part(*$column))),+]
            }
        }
    )+};
}

keys! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// Columns that keys of these columns begin with.
pub trait LeadingColumns<K> {}

macro_rules! leading {
    ($($($first:ident)+, $($all:ident)+;)+) => {$(
        impl<$($all),+> LeadingColumns<($($all,)+)> for ($($first,)+) {}
    )+};
}

leading! {
    A, A; A, A B; A, A B C; A, A B C D; A, A B C D E; A, A B C D E F;
    A B, A B; A B, A B C; A B, A B C D; A B, A B C D E; A B, A B C D E F;
    A B C, A B C; A B C, A B C D; A B C, A B C D E; A B C, A B C D E F;
    A B C D, A B C D; A B C D, A B C D E; A B C D, A B C D E F;
    A B C D E, A B C D E; A B C D E, A B C D E F;
}

/// A type of rows, or of what follows from them.
pub trait PlanRow: Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> PlanRow for T {}

/// A value whose type its users know.
pub(super) fn erased<T: Send + Sync + 'static>(value: T) -> Erased {
    Arc::new(value)
}

/// The arguments, by their type.
pub(super) fn arguments_of<A: 'static>(all: &dyn Any) -> &A {
    all.downcast_ref().expect("a plan is run with arguments of its type")
}

/// A value, by its type.
pub(super) fn shown<T: 'static>(value: &Erased) -> &T {
    value.downcast_ref().expect("values are of the types that they were declared with")
}

/// What is wrong with stored bytes.
pub(super) fn faulty(error: impl Display) -> Stop {
    Stop::Faulty(error.to_string())
}

/// A row from how it is stored.
pub(super) fn decoded<V: DeserializeOwned>(row: &SmallBytes) -> Result<V, Stop> {
    postcard::from_bytes(row.as_slice()).map_err(faulty)
}

/// A row as it is stored.
pub(super) fn encoded<V: Serialize>(value: &V) -> Result<SmallBytes, Stop> {
    postcard::to_stdvec(value).map(SmallBytes::from).map_err(faulty)
}

/// A row, if there is one, as a value.
pub(super) fn decode_row<V: PlanRow>(row: Option<&SmallBytes>) -> Result<Erased, Stop> {
    Ok(erased(row.map(decoded::<V>).transpose()?))
}

/// The rows of a range as a value.
pub(super) fn decode_rows<K: KeyColumns + Send + Sync, V: PlanRow>(
    rows: &[(SmallBytes, SmallBytes)],
) -> Result<Erased, Stop> {
    let typed = |(key, value): &(SmallBytes, SmallBytes)| {
        Ok((K::decoded(key.as_slice()).map_err(faulty)?, decoded::<V>(value)?))
    };
    Ok(erased(rows.iter().map(typed).collect::<Result<Vec<(K, V)>, Stop>>()?))
}

/// All values of a body as a list.
pub(super) fn gather_list<T: Send + Sync + 'static>(all: Vec<Erased>) -> Erased {
    let typed = |value: Erased| value.downcast::<T>().expect("one type for all elements");
    erased(all.into_iter().map(typed).collect::<Vec<Arc<T>>>())
}

/// The value of a body, if it ran.
pub(super) fn gather_one<T: Send + Sync + 'static>(all: Vec<Erased>) -> Erased {
    let typed = |value: Erased| value.downcast::<T>().expect("one type for all elements");
    erased(all.into_iter().next().map(typed))
}

/// The elements of a list.
pub(super) fn take_apart<T: Clone + Send + Sync + 'static>(list: &Erased) -> Vec<Erased> {
    shown::<Vec<T>>(list).iter().map(|element| erased(element.clone())).collect()
}

/// A table as steps name it.
pub(super) fn table_ref<K: KeyColumns, V>(table: PlanTable<K, V>) -> TableRef {
    TableRef { name: table.name, unit: table.unit, parts: K::PARTS }
}

/// A key of a table, or its first columns.
pub(super) fn key_of<K: KeyColumns, V>(table: PlanTable<K, V>, key: &impl KeyValues) -> KeyOf {
    let parts = key.parts().into_iter().map(|part| part.0).collect();
    KeyOf { table: table_ref(table), parts }
}
