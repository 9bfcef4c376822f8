//! A figure as a plot: what it shows over its axis, a line for each thing compared with a bar from
//! where to where its seeds lie, a thin one for each theory, and dashes and crosses for what the
//! paper says where it says it in numbers.

use super::canvas::{Canvas, Colour, LETTER};
use super::figure::{Figure, Measure};
use super::point::{Point, Quantity};
use super::seed_points::SeedPoints;
use crate::table::grouped;

const SIZE: (i32, i32) = (900, 520);
/// Left, top, right, bottom of the plot itself.
const FRAME: (i32, i32, i32, i32) = (90, 60, 700, 450);
const BLACK: Colour = [20, 20, 20];
const GREY: Colour = [210, 210, 210];
/// Colours that are told apart in print and by the colour-blind.
const COLOURS: [Colour; 6] =
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [230, 159, 0]];

/// Where the numbers of one direction lie in the picture.
struct PlotScale {
    /// The least and the most that is drawn.
    ends: (f64, f64),
    logarithmic: bool,
    /// Where these lie, in pixels.
    pixels: (i32, i32),
}

impl PlotScale {
    /// A scale for these numbers; one that is not logarithmic begins at 0 and ends at `most`.
    fn of(numbers: &[f64], logarithmic: bool, most: f64, pixels: (i32, i32)) -> PlotScale {
        let positive = || numbers.iter().copied().filter(|it| it.is_finite() && *it > 0.0);
        let highest = positive().fold(f64::MIN_POSITIVE, f64::max);
        let lowest = positive().fold(highest, f64::min);
        let ends = if logarithmic { (lowest, highest) } else { (0.0, most) };
        PlotScale { ends, logarithmic, pixels }
    }

    fn place(&self, number: f64) -> i32 {
        let drawn = |number: f64| match self.logarithmic {
            true => number.max(f64::MIN_POSITIVE).ln(),
            false => number,
        };
        let (from, to) = (drawn(self.ends.0), drawn(self.ends.1));
        let share = (drawn(number) - from) / (to - from).max(f64::MIN_POSITIVE);
        let (start, end) = self.pixels;
        start + (share.clamp(0.0, 1.0) * f64::from(end - start)) as i32
    }

    /// Numbers to mark: of a logarithmic scale its powers of ten, else five steps.
    fn marks(&self) -> Vec<f64> {
        if !self.logarithmic {
            return (0..=5).map(|step| self.ends.1 * f64::from(step) / 5.0).collect();
        }
        let (from, to) = (self.ends.0.log10().ceil() as i32, self.ends.1.log10().floor() as i32);
        (from..=to).map(|power| 10_f64.powi(power)).collect()
    }
}

/// Something drawn: its name, where it is, and from where to where its seeds lie; a theory's line
/// is thin.
struct Drawn {
    name: &'static str,
    places: Vec<(f64, f64)>,
    ranges: Vec<(f64, f64)>,
    theory: bool,
}

/// Draws the points of a figure.
pub fn draw(figure: &Figure, all_points: &[SeedPoints]) -> Canvas {
    let mut canvas = Canvas::new(SIZE.0, SIZE.1);
    let medians: Vec<Point> =
        all_points.iter().map(|seed_points| seed_points.median.clone()).collect();
    let claimed = claimed_points(figure, &medians);
    let printed = figure.printed.iter().map(|it| (it.name, it.places(figure, &medians)));
    // Where the figure is over something measured, the paper's values of the axis say nothing.
    let printed: Vec<_> = printed.filter(|_| figure.against.is_none()).collect();
    let lines = lines(figure, all_points);
    let all = lines.iter().flat_map(|line| &line.places);
    let all = || all.clone().chain(printed.iter().flat_map(|(_, places)| places));
    let xs: Vec<f64> = all().map(|(x, _)| *x).collect();
    let mut ys: Vec<f64> = all().map(|(_, y)| *y).collect();
    ys.extend(lines.iter().flat_map(|line| &line.ranges).map(|(_, most)| *most));
    ys.extend(claimed.iter().map(|(_, y, _)| *y));
    let highest = |numbers: &[f64]| {
        let finite = numbers.iter().copied().filter(|it| it.is_finite());
        finite.fold(f64::MIN_POSITIVE, f64::max)
    };
    let (left, top, right, bottom) = FRAME;
    let logarithmic = figure.axis.logarithmic && figure.against.is_none();
    let across = PlotScale::of(&xs, logarithmic, highest(&xs), (left, right));
    let up = PlotScale::of(&ys, figure.logarithmic, round_up(highest(&ys)), (bottom, top));
    draw_frame(&mut canvas, figure, &medians, (&across, &up));
    let place = |(x, y): &(f64, f64)| (across.place(*x), up.place(*y));
    for (number, line) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let places: Vec<_> = line.places.iter().map(place).collect();
        for pair in places.windows(2) {
            canvas.line(pair[0], pair[1], if line.theory { 1 } else { 2 }, colour);
        }
        for ((x, _), (least, most)) in places.iter().zip(&line.ranges) {
            draw_range(&mut canvas, *x, (up.place(*least), up.place(*most)), colour);
        }
        let size = if line.theory { 3 } else { 8 };
        places.iter().for_each(|place| canvas.mark(*place, size, colour));
        legend(&mut canvas, number, line.name, colour);
    }
    let mut row = FRAME.1 + 30 * (lines.len() + 1) as i32;
    for (name, places) in &printed {
        let places: Vec<_> = places.iter().map(place).collect();
        for pair in places.windows(2) {
            canvas.dashes(pair[0], pair[1], BLACK);
        }
        places.iter().for_each(|place| cross(&mut canvas, *place, 3));
        canvas.dashes((FRAME.2 + 20, row + 4), (FRAME.2 + 36, row + 4), BLACK);
        canvas.text((FRAME.2 + 40, row), name, BLACK);
        row += 30;
    }
    for (x, y, what) in &claimed {
        cross(&mut canvas, place(&(*x, *y)), 7);
        canvas.text((FRAME.2 + 20, row), &format!("x {what}"), BLACK);
        row += 30;
    }
    canvas
}

fn cross(canvas: &mut Canvas, (x, y): (i32, i32), size: i32) {
    canvas.line((x - size, y - size), (x + size, y + size), 2, BLACK);
    canvas.line((x - size, y + size), (x + size, y - size), 2, BLACK);
}

/// A bar from where to where the seeds lie.
fn draw_range(canvas: &mut Canvas, x: i32, (least, most): (i32, i32), colour: Colour) {
    canvas.line((x, least), (x, most), 1, colour);
    for y in [least, most] {
        canvas.line((x - 5, y), (x + 5, y), 1, colour);
    }
}

fn lines(figure: &Figure, all_points: &[SeedPoints]) -> Vec<Drawn> {
    let of = |name: &'static str| all_points.iter().filter(move |it| it.median.line == name);
    let across = |point: &Point| figure.against.map_or(point.x, |quantity| point.shows(quantity));
    let measured = figure.lines.iter().map(|line| Drawn {
        name: line.name,
        places: of(line.name)
            .map(|it| (across(&it.median), it.median.shows(line.shows.unwrap_or(figure.shows))))
            .collect(),
        ranges: of(line.name).map(|it| it.range(line.shows.unwrap_or(figure.shows))).collect(),
        theory: false,
    });
    let theory = figure.models.iter().map(|model| Drawn {
        name: model.name,
        places: of(model.of).map(|it| (across(&it.median), (model.predicts)(&it.median))).collect(),
        ranges: Vec::new(),
        theory: true,
    });
    measured.chain(theory).collect()
}

/// What the paper claims in numbers that belong into the picture: where, and in words. A speedup is
/// drawn over our own baseline.
fn claimed_points(figure: &Figure, points: &[Point]) -> Vec<(f64, f64, String)> {
    let right = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let ours = |line| {
        let at = points.iter().find(|it| it.line == line && it.x == right);
        at.map_or(0.0, |point| point.throughput)
    };
    let shown = |quantity| figure.shows == quantity && figure.against.is_none();
    let output_text = figure.claims.iter().filter_map(|claim| {
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
    output_text.collect()
}

fn legend(canvas: &mut Canvas, number: usize, name: &str, colour: Colour) {
    let (x, y) = (FRAME.2 + 20, FRAME.1 + 30 * number as i32);
    canvas.mark((x + 4, y + 4), 10, colour);
    canvas.text((x + 20, y), name, BLACK);
}

fn draw_frame(
    canvas: &mut Canvas,
    figure: &Figure,
    points: &[Point],
    (across, up): (&PlotScale, &PlotScale),
) {
    let (left, top, right, bottom) = FRAME;
    canvas.text((left, 20), figure.about, BLACK);
    canvas.text((left, 40), &format!("{}, simulated", figure.shows.name()), BLACK);
    for value in up.marks() {
        let y = up.place(value);
        canvas.line((left, y), (right, y), 1, GREY);
        let label = label(value, up.ends.1 < 50.0 && !up.logarithmic);
        let width = label.len() as i32 * LETTER;
        canvas.text((left - width - 8, y - LETTER / 2), &label, BLACK);
    }
    let mut marks = match figure.against {
        Some(_) => across.marks(),
        None => points.iter().map(|point| point.x).collect(),
    };
    if across.logarithmic {
        for x in across.marks() {
            canvas.line((across.place(x), top), (across.place(x), bottom), 1, GREY);
        }
    }
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    for x in marks {
        let at = across.place(x);
        canvas.line((at, bottom), (at, bottom + 6), 1, BLACK);
        canvas.text((at - LETTER, bottom + 12), &label(x, false), BLACK);
    }
    let name = figure.against.map_or(figure.axis.name, Quantity::name);
    canvas.text((right - name.len() as i32 * LETTER / 2, bottom + 30), name, BLACK);
    canvas.line((left, bottom), (right, bottom), 1, BLACK);
    canvas.line((left, top), (left, bottom), 1, BLACK);
}

/// A number as a label, with two places where they are wanted.
fn label(number: f64, places: bool) -> String {
    match number {
        _ if places => format!("{number:.2}"),
        number if number >= 1_000.0 => grouped(number as u64),
        number if number < 0.01 && number > 0.0 => format!("{number:.0e}"),
        number => format!("{}", round(number)),
    }
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
