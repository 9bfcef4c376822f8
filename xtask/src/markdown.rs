//! Pages in Markdown: their headings, links and blocks of code.

use std::collections::{BTreeMap, BTreeSet};

/// A page, taken apart.
#[derive(Debug, Default)]
pub struct Page {
    /// What links can lead to: a name for each heading, as web pages of repositories make them.
    pub anchors: BTreeSet<String>,
    /// The line of each link and where it leads to.
    pub links: Vec<(usize, String)>,
    /// The line where each block of code begins, what stands behind its fence, and its lines.
    pub blocks: Vec<(usize, String, Vec<String>)>,
}

impl Page {
    /// Reads a page.
    pub fn read(text: &str) -> Page {
        let (mut page, mut taken) = (Page::default(), BTreeMap::new());
        let mut block: Option<(usize, String, Vec<String>)> = None;
        for (line, number) in text.lines().zip(1..) {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut block, fence) {
                (None, Some(kind)) => block = Some((number, kind.trim().to_owned(), Vec::new())),
                (Some(_), Some(_)) => page.blocks.extend(block.take()),
                (Some((.., lines)), None) => lines.push(line.to_owned()),
                (None, None) => {
                    page.anchors.extend(heading(line).map(|it| anchor(it, &mut taken)));
                    page.links.extend(links(line).map(|link| (number, link.to_owned())));
                }
            }
        }
        assert!(block.is_none(), "a block of code has no end");
        page
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len()).then(|| text.strip_prefix(' ')).flatten()
}

/// The name of a heading: small letters, digits, `-` and `_`; a further one of a name gets a
/// number.
fn anchor(heading: &str, taken: &mut BTreeMap<String, usize>) -> String {
    let mut name = String::new();
    for letter in heading.trim().chars() {
        match letter {
            ' ' => name.push('-'),
            '-' | '_' => name.push(letter),
            other if other.is_alphanumeric() => name.extend(other.to_lowercase()),
            _ => {}
        }
    }
    let before = taken.entry(name.clone()).or_insert(0);
    *before += 1;
    if *before == 1 { name } else { format!("{name}-{}", *before - 1) }
}

/// The targets of the links of a line: `[text](target)`, outside of `code`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let pieces = line.split("](").collect::<Vec<_>>();
    let mut before = 0;
    let mut found = Vec::new();
    for pair in pieces.windows(2) {
        before += pair[0].matches('`').count();
        let is_text = before.is_multiple_of(2);
        found.extend(pair[1].split(')').next().filter(|_| is_text));
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart() {
        let text = "# One: two, `three`\nsee [a](b.md#c) and `[x](y)`, [d](#e)\n```rust,ignore\n\
                    # no heading\n[no](link)\n```\n## One two three\n";
        let page = Page::read(text);
        let anchors = ["one-two-three", "one-two-three-1"].map(str::to_owned);
        assert_eq!(page.anchors, BTreeSet::from(anchors));
        assert_eq!(page.links, [(2, "b.md#c".to_owned()), (2, "#e".to_owned())]);
        let lines = ["# no heading", "[no](link)"].map(str::to_owned).to_vec();
        assert_eq!(page.blocks, [(3, "rust,ignore".to_owned(), lines)]);
    }
}
