//! A figure as a plot: what it shows over its axis, a line for each thing compared, a thin one for
//! each theory, and what the paper says where it says it in numbers.

use super::canvas::{Canvas, Colour, LETTER};
use super::figure::{Figure, Measure};
use super::point::{Point, Quantity};
use crate::table::grouped;

const SIZE: (i32, i32) = (900, 520);
/// Left, top, right, bottom of the plot itself.
const FRAME: (i32, i32, i32, i32) = (90, 60, 700, 450);
const BLACK: Colour = [20, 20, 20];
const GREY: Colour = [210, 210, 210];
/// Colours that are told apart in print and by the colour-blind.
const COLOURS: [Colour; 6] =
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [230, 159, 0]];

/// Where numbers lie in the picture.
struct Scale {
    /// The left and the right end, as they are drawn.
    ends: (f64, f64),
    logarithmic: bool,
    top: f64,
}

impl Scale {
    fn place(&self, x: f64, y: f64) -> (i32, i32) {
        let (left, top, right, bottom) = FRAME;
        let drawn = if self.logarithmic { x.max(f64::MIN_POSITIVE).ln() } else { x };
        let (from, to) = self.ends;
        let across = (drawn - from) / (to - from).max(f64::MIN_POSITIVE);
        let across = across.clamp(0.0, 1.0) * f64::from(right - left);
        let up = y / self.top * f64::from(bottom - top);
        (left + across as i32, bottom - up as i32)
    }
}

/// Something drawn: its name, its places, and whether it is a theory's.
struct Drawn {
    name: &'static str,
    places: Vec<(f64, f64)>,
    theory: bool,
}

/// Draws the points of a figure.
pub fn draw(figure: &Figure, points: &[Point]) -> Canvas {
    let mut canvas = Canvas::new(SIZE.0, SIZE.1);
    let paper = paper_points(figure, points);
    let lines = lines(figure, points);
    let all = || lines.iter().flat_map(|line| line.places.iter().copied());
    let highest = all().map(|(_, y)| y).chain(paper.iter().map(|(_, y, _)| *y));
    let logarithmic = figure.axis.logarithmic && figure.against.is_none();
    let right = all().map(|(x, _)| x).fold(f64::MIN_POSITIVE, f64::max);
    let ends = match logarithmic {
        true => (all().map(|(x, _)| x).fold(right, f64::min).ln(), right.ln()),
        false => (0.0, right),
    };
    let highest = highest.filter(|y| y.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
    let scale = Scale { ends, logarithmic, top: round_up(highest) };
    draw_frame(&mut canvas, figure, points, &scale);
    for (number, line) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let places: Vec<_> = line.places.iter().map(|(x, y)| scale.place(*x, *y)).collect();
        for pair in places.windows(2) {
            canvas.line(pair[0], pair[1], if line.theory { 1 } else { 2 }, colour);
        }
        let size = if line.theory { 3 } else { 8 };
        places.iter().for_each(|place| canvas.mark(*place, size, colour));
        legend(&mut canvas, number, line.name, colour);
    }
    for (number, (x, y, what)) in paper.iter().enumerate() {
        let (x, y) = scale.place(*x, *y);
        canvas.line((x - 7, y - 7), (x + 7, y + 7), 2, BLACK);
        canvas.line((x - 7, y + 7), (x + 7, y - 7), 2, BLACK);
        let row = FRAME.1 + 30 * (lines.len() + 1 + number) as i32;
        canvas.text((FRAME.2 + 20, row), &format!("x {what}"), BLACK);
    }
    canvas
}

fn lines(figure: &Figure, points: &[Point]) -> Vec<Drawn> {
    let of = |name: &'static str| points.iter().filter(move |point| point.line == name);
    let across = |point: &Point| figure.against.map_or(point.x, |quantity| point.shows(quantity));
    let measured = figure.lines.iter().map(|line| Drawn {
        name: line.name,
        places: of(line.name).map(|it| (across(it), it.shows(figure.shows))).collect(),
        theory: false,
    });
    let theory = figure.models.iter().map(|model| Drawn {
        name: model.name,
        places: of(model.of).map(|it| (across(it), (model.says)(it))).collect(),
        theory: true,
    });
    measured.chain(theory).collect()
}

/// What the paper says in numbers that belong into the picture: where, and in words. A speedup is
/// drawn over our own baseline.
fn paper_points(figure: &Figure, points: &[Point]) -> Vec<(f64, f64, String)> {
    let right = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let ours = |line| {
        let at = points.iter().find(|it| it.line == line && it.x == right);
        at.map_or(0.0, |point| point.throughput)
    };
    let shown = |quantity| figure.shows == quantity && figure.against.is_none();
    let said = figure.claims.iter().filter_map(|claim| {
        let paper = claim.paper?;
        match claim.measure {
            Measure::Throughput(line) if shown(Quantity::Throughput) => {
                Some((right, paper, format!("paper: {line}")))
            }
            Measure::Speedup(_, under) if shown(Quantity::Throughput) => {
                Some((right, paper * ours(under), format!("paper: {paper} {under}")))
            }
            Measure::At(quantity, line, x) if shown(quantity) => {
                Some((x, paper, format!("paper: {line}")))
            }
            _ => None,
        }
    });
    said.collect()
}

fn legend(canvas: &mut Canvas, number: usize, name: &str, colour: Colour) {
    let (x, y) = (FRAME.2 + 20, FRAME.1 + 30 * number as i32);
    canvas.mark((x + 4, y + 4), 10, colour);
    canvas.text((x + 20, y), name, BLACK);
}

fn draw_frame(canvas: &mut Canvas, figure: &Figure, points: &[Point], scale: &Scale) {
    let (left, top, right, bottom) = FRAME;
    canvas.text((left, 20), figure.about, BLACK);
    canvas.text((left, 40), &format!("{}, simulated", figure.shows.name()), BLACK);
    for step in 0..=5 {
        let value = scale.top * f64::from(step) / 5.0;
        let y = bottom - (bottom - top) * step / 5;
        canvas.line((left, y), (right, y), 1, GREY);
        let label = if scale.top < 50.0 { format!("{value:.2}") } else { grouped(value as u64) };
        let width = label.len() as i32 * LETTER;
        canvas.text((left - width - 8, y - LETTER / 2), &label, BLACK);
    }
    let mut marks: Vec<f64> = match figure.against {
        Some(_) => (0..=5).map(|step| scale.ends.1 * f64::from(step) / 5.0).collect(),
        None => points.iter().map(|point| point.x).collect(),
    };
    marks.dedup();
    for x in marks {
        let (at, _) = scale.place(x, 0.0);
        canvas.line((at, bottom), (at, bottom + 6), 1, BLACK);
        let label = if x >= 1_000.0 { grouped(x as u64) } else { format!("{}", round(x)) };
        canvas.text((at - LETTER, bottom + 12), &label, BLACK);
    }
    let name = figure.against.map_or(figure.axis.name, Quantity::name);
    canvas.text((right - name.len() as i32 * LETTER / 2, bottom + 30), name, BLACK);
    canvas.line((left, bottom), (right, bottom), 1, BLACK);
    canvas.line((left, top), (left, bottom), 1, BLACK);
}

/// A number to two places, for a label.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// A round number that is at least this.
fn round_up(number: f64) -> f64 {
    let unit = 10_f64.powf(number.max(1e-6).log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.iter().find(|step| **step * unit >= number);
    step.unwrap_or(&10.0) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        let ends = [0.45, 1.0, 97.0, 101.0, 4_999.0].map(round_up);
        assert_eq!(ends, [0.5, 1.0, 100.0, 150.0, 5_000.0]);
    }
}
