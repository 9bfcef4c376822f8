//! The figures that can be reproduced.

mod amaro;
mod bumper;
mod bumper_general;
mod gmu;
mod granola;

use super::figure::Figure;

/// All figures.
pub fn all() -> impl Iterator<Item = &'static Figure> {
    let general = bumper_general::FIGURES.iter();
    let granola = granola::FIGURES.iter().flat_map(|part| part.iter());
    let all = bumper::FIGURES.iter().chain(general).chain(gmu::FIGURES).chain(granola);
    all.chain(amaro::FIGURES.iter().flat_map(|part| part.iter()))
}
