//! The handle of an object: a method for each field.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident};

/// The code of a struct's handle.
///
/// # Errors
/// It is no struct with named fields, or has parameters.
pub fn handle_of(input: &DeriveInput) -> Result<TokenStream, Error> {
    let fields = named_fields(input)?;
    let (name, visibility) = (&input.ident, &input.vis);
    let handle = format_ident!("{name}Fields");
    let methods = fields.iter().map(|field| method(name, field));
    let about = format!("An opened [`{name}`]: what a transaction reads and writes of it.");
    Ok(quote! {
        #[doc = #about]
        #[derive(Clone, Debug)]
        #visibility struct #handle {
            opened: ::muesli::objects::OpenedObject<#name>,
        }

        #[automatically_derived]
        #[allow(dead_code, reason = "not every program uses every field")]
        impl #handle {
            #(#methods)*
        }

        #[automatically_derived]
        impl ::core::convert::From<::muesli::objects::OpenedObject<#name>> for #handle {
            fn from(opened: ::muesli::objects::OpenedObject<#name>) -> #handle {
                #handle { opened }
            }
        }

        #[automatically_derived]
        impl ::core::ops::Deref for #handle {
            type Target = ::muesli::objects::OpenedObject<#name>;

            fn deref(&self) -> &::muesli::objects::OpenedObject<#name> {
                &self.opened
            }
        }

        #[automatically_derived]
        impl ::muesli::objects::Object for #name {
            type Fields = #handle;
        }
    })
}

/// The fields of a struct that can be an object.
fn named_fields(input: &DeriveInput) -> Result<Vec<&Field>, Error> {
    let refuse = |what: &str| {
        let text = format!(
            "`#[derive(Object)]` is for structs with named fields, and `{}` is {what}",
            input.ident
        );
        Err(Error::new_spanned(&input.ident, text))
    };
    let data = match &input.data {
        Data::Struct(data) => data,
        Data::Enum(_) => return refuse("an enum: make it a field of a struct"),
        Data::Union(_) => return refuse("a union"),
    };
    let fields = match &data.fields {
        Fields::Named(named) => named.named.iter().collect(),
        Fields::Unnamed(_) => return refuse("a tuple struct: name its fields"),
        Fields::Unit => return refuse("a struct without fields"),
    };
    match input.generics.params.is_empty() {
        true => Ok(fields),
        false => {
            let text = format!(
                "`#[derive(Object)]` takes no parameters of types, lifetimes or numbers: an object \
                 is stored, and `{}` is to say of what its fields are",
                input.ident
            );
            Err(Error::new_spanned(&input.generics.params, text))
        }
    }
}

/// The method that gives a reference to a field.
fn method(object: &Ident, field: &Field) -> TokenStream {
    let (visibility, of) = (&field.vis, &field.ty);
    let name = field.ident.as_ref().expect("fields of such a struct have names");
    let (conditions, docs) = (attributes(field, "cfg"), attributes(field, "doc"));
    let docs = match docs.is_empty() {
        true => {
            let about = format!("The field `{name}`.");
            quote!(#[doc = #about])
        }
        false => quote!(#(#docs)*),
    };
    quote! {
        #(#conditions)*
        #docs
        #visibility fn #name(&self) -> ::muesli::objects::Field<'_, #object, #of> {
            ::muesli::objects::Field::new(
                &self.opened,
                |object| &object.#name,
                |object| &mut object.#name,
            )
        }
    }
}

fn attributes<'a>(field: &'a Field, name: &str) -> Vec<&'a Attribute> {
    field.attrs.iter().filter(|attribute| attribute.path().is_ident(name)).collect()
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::*;

    fn made(source: &str) -> String {
        match handle_of(&parse_str(source).expect("a type")) {
            Ok(code) => code.to_string(),
            Err(error) => format!("refused: {error}"),
        }
    }

    #[test]
    fn a_field_has_a_method_as_visible_as_itself_with_its_documentation() {
        let code = made("pub struct A { /// How much.\n pub sum: i64, #[cfg(x)] r#type: u8 }");
        for part in [
            "pub struct AFields",
            "# [doc = \" How much.\"] pub fn sum (& self)",
            "# [cfg (x)] # [doc = \"The field `r#type`.\"] fn r#type (& self)",
            "impl :: muesli :: objects :: Object for A",
        ] {
            assert!(code.contains(part), "{part}: {code}");
        }
        assert!(!code.contains("refused"), "{code}");
    }

    #[test]
    fn what_cannot_be_an_object_is_refused_and_named() {
        for (source, why) in [
            ("enum Coin { Heads }", "`Coin` is an enum: make it a field"),
            ("struct Pair(u8, u8);", "`Pair` is a tuple struct: name its fields"),
            ("struct Nothing;", "`Nothing` is a struct without fields"),
            ("union Bits { a: u8 }", "`Bits` is a union"),
            ("struct Of<T> { a: T }", "takes no parameters"),
            ("struct Of<'a> { a: &'a str }", "takes no parameters"),
        ] {
            let refused = made(source);
            assert!(refused.starts_with("refused: ") && refused.contains(why), "{refused}");
        }
    }
}
