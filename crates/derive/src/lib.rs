//! `#[derive(Object)]`: the handle through which a transaction uses an opened object of a struct.
//!
//! `muesli::objects` exports it beside the trait of the same name, and says how objects are used.

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

mod fields;

/// Makes a struct with named fields an object.
///
/// For `struct Account` it makes the handle `AccountFields`, with a method for each field that
/// gives a reference to it. The method has the field's documentation and visibility. The struct is
/// also to be `Clone`, `Serialize` and `Deserialize`.
#[proc_macro_derive(Object)]
pub fn derive_object(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    fields::handle_of(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
