//! A figure as a plot: throughput over nodes, a line for each protocol, and what the paper says
//! where it says it in numbers.

use super::canvas::{Canvas, Colour, LETTER};
use super::figures::{Figure, Measure};
use super::points::Point;
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
    nodes_most: f64,
    throughput_most: f64,
}

impl Scale {
    fn place(&self, nodes: f64, throughput: f64) -> (i32, i32) {
        let (left, top, right, bottom) = FRAME;
        let across = nodes / self.nodes_most * f64::from(right - left);
        let up = throughput / self.throughput_most * f64::from(bottom - top);
        (left + across as i32, bottom - up as i32)
    }
}

/// Draws the points of a figure.
pub fn draw(figure: &Figure, points: &[Point]) -> Canvas {
    let mut canvas = Canvas::new(SIZE.0, SIZE.1);
    let paper = paper_points(figure, points);
    let highest = points.iter().map(|point| point.throughput);
    let highest = highest.chain(paper.iter().map(|(_, throughput, _)| *throughput));
    let scale = Scale {
        nodes_most: points.iter().map(|point| point.nodes).max().unwrap_or(1) as f64,
        throughput_most: round_up(highest.fold(1.0, f64::max)),
    };
    draw_frame(&mut canvas, figure, points, &scale);
    for (number, protocol) in figure.protocols.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let of = points.iter().filter(|point| point.protocol == *protocol);
        let places: Vec<_> =
            of.map(|point| scale.place(point.nodes as f64, point.throughput)).collect();
        for pair in places.windows(2) {
            canvas.line(pair[0], pair[1], 2, colour);
        }
        places.iter().for_each(|place| canvas.mark(*place, 8, colour));
        legend(&mut canvas, number, protocol, colour);
    }
    for (number, (nodes, throughput, what)) in paper.iter().enumerate() {
        let (x, y) = scale.place(*nodes, *throughput);
        canvas.line((x - 7, y - 7), (x + 7, y + 7), 2, BLACK);
        canvas.line((x - 7, y + 7), (x + 7, y - 7), 2, BLACK);
        let row = FRAME.1 + 30 * (figure.protocols.len() + 1 + number) as i32;
        canvas.text((FRAME.2 + 20, row), &format!("x {what}"), BLACK);
    }
    canvas
}

/// What the paper says about the most nodes, as nodes, transactions a second, and words. A
/// speedup is drawn over our own baseline.
fn paper_points(figure: &Figure, points: &[Point]) -> Vec<(f64, f64, String)> {
    let most = points.iter().map(|point| point.nodes).max().unwrap_or(0);
    let ours = |protocol| {
        let at = points.iter().find(|it| it.protocol == protocol && it.nodes == most);
        at.map_or(0.0, |point| point.throughput)
    };
    let said = figure.claims.iter().filter_map(|claim| {
        let paper = claim.paper?;
        match claim.measure {
            Measure::Throughput(protocol) => {
                Some((most as f64, paper, format!("paper: {protocol}")))
            }
            Measure::Speedup(_, under) => {
                Some((most as f64, paper * ours(under), format!("paper: {paper} {under}")))
            }
            Measure::Loss(..) | Measure::Aborts(_) | Measure::Scaling(_) => None,
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
    canvas.text((left, 40), "committed transactions a second, simulated", BLACK);
    for step in 0..=5 {
        let value = scale.throughput_most * f64::from(step) / 5.0;
        let (_, y) = scale.place(0.0, value);
        canvas.line((left, y), (right, y), 1, GREY);
        let label = grouped(value as u64);
        let width = label.len() as i32 * LETTER;
        canvas.text((left - width - 8, y - LETTER / 2), &label, BLACK);
    }
    let mut nodes: Vec<usize> = points.iter().map(|point| point.nodes).collect();
    nodes.dedup();
    for nodes in nodes {
        let (x, _) = scale.place(nodes as f64, 0.0);
        canvas.line((x, bottom), (x, bottom + 6), 1, BLACK);
        canvas.text((x - LETTER, bottom + 12), &nodes.to_string(), BLACK);
    }
    canvas.text((right + 12, bottom + 12), "nodes", BLACK);
    canvas.line((left, bottom), (right, bottom), 1, BLACK);
    canvas.line((left, top), (left, bottom), 1, BLACK);
}

/// A round number that is at least this.
fn round_up(number: f64) -> f64 {
    let unit = 10_f64.powf(number.max(1.0).log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.iter().find(|step| **step * unit >= number);
    step.unwrap_or(&10.0) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        let ends = [0.5, 1.0, 97.0, 101.0, 4_999.0].map(round_up);
        assert_eq!(ends, [1.0, 1.0, 100.0, 150.0, 5_000.0]);
    }
}
