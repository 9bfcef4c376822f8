//! The figures that can be reproduced.

mod amaro;
mod bumper;
mod bumper_general;
mod gmu;
mod granola;
mod turcu;

use super::figure::Figure;

/// Names that stand for several figures: those that begin with it.
pub const GROUPS: &[&str] =
    &["hierarchy-wins", "nesting-auto", "checkpoints", "turcu-8.1", "turcu-10.5"];

/// The names of the figures that this stands for, if it stands for several.
pub fn group(name: &str) -> Vec<&'static str> {
    let is_of = |figure: &str| figure.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let known = GROUPS.contains(&name);
    all().map(|figure| figure.name).filter(|figure| known && is_of(figure)).collect()
}

/// All figures.
pub fn all() -> impl Iterator<Item = &'static Figure> {
    let general = bumper_general::FIGURES.iter();
    let granola = granola::FIGURES.iter().flat_map(|part| part.iter());
    let all = bumper::FIGURES.iter().chain(general).chain(gmu::FIGURES).chain(granola);
    let all = all.chain(amaro::FIGURES.iter().flat_map(|part| part.iter()));
    all.chain(turcu::figures())
}
