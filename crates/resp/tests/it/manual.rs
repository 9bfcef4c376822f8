//! The manual has the table of commands as the code has it.

#[test]
fn the_manual_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/using/redis.md");
    let found = std::fs::read_to_string(path).unwrap();
    let expected = muesli_resp::page(&found).unwrap();
    if std::env::var_os("MUESLI_WRITE_MANUAL").is_some() {
        std::fs::write(path, &expected).unwrap();
    } else {
        assert!(
            found == expected,
            "run it once more with MUESLI_WRITE_MANUAL=1, and read the change"
        );
    }
}
