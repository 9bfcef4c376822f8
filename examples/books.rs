//! The code of the books under `docs/`, compiled and run with the tests: each page is the
//! documentation of an empty item here, so that the code on it is tested as any documentation is.
//! (The front page is tested so by the crate `muesli`.)

#![cfg(doctest)]

macro_rules! pages {
    ($($name:ident: $file:literal;)*) => {$(
        #[doc = include_str!(concat!("../docs/", $file))]
        mod $name {}
    )*};
}

pages! {
    first_program: "using/first-program.md";
    keys_and_rows: "using/keys-and-rows.md";
    errors: "using/errors.md";
    sessions: "using/sessions.md";
    durable: "using/durable.md";
    export: "using/export.md";
    procedures: "using/procedures.md";
    structures: "using/structures.md";
    nested: "using/nested.md";
    objects: "using/objects.md";
    open_nesting: "using/open-nesting.md";
    cluster: "running/cluster.md";
}
