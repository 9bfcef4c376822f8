//! A picture drawn once and written twice: as SVG, and as pixels for PNG.

use std::fmt::Write as _;
use std::io::Cursor;

use anyhow::Context;
use font8x8::legacy::BASIC_LEGACY;

/// A colour: red, green, blue.
pub type Colour = [u8; 3];

/// Letters are so wide and high, in pixels.
pub const LETTER: i32 = 8;

/// A dash is so long, and so is what is left out after it, in pixels.
const DASH: i32 = 6;

/// A picture under way.
pub struct Canvas {
    width: i32,
    height: i32,
    pixels: Vec<u8>,
    svg: String,
}

impl Canvas {
    /// A white picture of this size in pixels.
    pub fn new(width: i32, height: i32) -> Canvas {
        let mut svg = String::new();
        // Here and below: writing to a string cannot fail.
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"monospace\" font-size=\"13\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        let pixels = vec![u8::MAX; (width * height * 3) as usize];
        Canvas { width, height, pixels, svg }
    }

    /// A line, so many pixels thick.
    pub fn line(&mut self, from: (i32, i32), to: (i32, i32), thick: i32, colour: Colour) {
        self.stroke(from, to, &format!("stroke-width=\"{thick}\""), colour);
        for (_, x, y) in points(from, to) {
            self.dot(x - thick / 2, y - thick / 2, thick, thick, colour);
        }
    }

    /// A thin line of dashes.
    pub fn dashes(&mut self, from: (i32, i32), to: (i32, i32), colour: Colour) {
        self.stroke(from, to, &format!("stroke-dasharray=\"{DASH}\""), colour);
        for (_, x, y) in points(from, to).filter(|(step, ..)| step / DASH % 2 == 0) {
            self.dot(x, y, 1, 1, colour);
        }
    }

    /// A line as SVG has it.
    fn stroke(&mut self, from: (i32, i32), to: (i32, i32), style: &str, colour: Colour) {
        let ((x1, y1), (x2, y2), colour) = (from, to, hex(colour));
        let _ = writeln!(
            self.svg,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" {style}/>"
        );
    }

    /// A filled square around a point.
    pub fn mark(&mut self, (x, y): (i32, i32), size: i32, colour: Colour) {
        let (left, top) = (x - size / 2, y - size / 2);
        let _ = writeln!(
            self.svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{size}\" height=\"{size}\" fill=\"{}\"/>",
            hex(colour)
        );
        self.dot(left, top, size, size, colour);
    }

    /// Text whose first letter's upper left corner is here; letters beyond ASCII become `?`.
    pub fn text(&mut self, (x, y): (i32, i32), text: &str, colour: Colour) {
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
        let width = text.chars().count() as i32 * LETTER;
        let _ = writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{}\" textLength=\"{width}\" fill=\"{}\">{escaped}</text>",
            y + LETTER,
            hex(colour)
        );
        for (place, letter) in text.chars().enumerate() {
            let glyph = BASIC_LEGACY.get(letter as usize).unwrap_or(&BASIC_LEGACY['?' as usize]);
            for (row, bits) in glyph.iter().enumerate() {
                for column in (0..8).filter(|column| bits & (1 << column) != 0) {
                    let left = x + place as i32 * LETTER + column;
                    self.dot(left, y + row as i32, 1, 1, colour);
                }
            }
        }
    }

    /// Fills pixels; what is outside is left out.
    fn dot(&mut self, left: i32, top: i32, width: i32, height: i32, colour: Colour) {
        for y in top.max(0)..(top + height).min(self.height) {
            for x in left.max(0)..(left + width).min(self.width) {
                let at = ((y * self.width + x) * 3) as usize;
                self.pixels[at..at + 3].copy_from_slice(&colour);
            }
        }
    }

    /// The picture as SVG.
    pub fn svg(&self) -> String {
        format!("{}</svg>\n", self.svg)
    }

    /// The picture as PNG.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn png(&self) -> anyhow::Result<Vec<u8>> {
        let mut file = Cursor::new(Vec::new());
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let message = "cannot encode the picture";
        let mut writer = encoder.write_header().context(message)?;
        writer.write_image_data(&self.pixels).context(message)?;
        writer.finish().context(message)?;
        Ok(file.into_inner())
    }
}

/// The points of a line, each with its number.
fn points(from: (i32, i32), to: (i32, i32)) -> impl Iterator<Item = (i32, i32, i32)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let steps = dx.abs().max(dy.abs()).max(1);
    (0..=steps).map(move |step| (step, from.0 + dx * step / steps, from.1 + dy * step / steps))
}

fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_pictures_show_what_was_drawn() {
        let mut canvas = Canvas::new(40, 20);
        canvas.line((0, 10), (39, 10), 1, [255, 0, 0]);
        canvas.dashes((0, 15), (39, 15), [0, 255, 0]);
        canvas.mark((-5, -5), 4, [0, 0, 0]);
        canvas.text((2, 2), "a<µ", [0, 0, 255]);
        let svg = canvas.svg();
        assert!(svg.contains("#ff0000") && svg.contains("a&lt;µ") && svg.ends_with("</svg>\n"));
        let png = canvas.png().unwrap();
        let mut reader = png::Decoder::new(Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, canvas.pixels);
        let (pixels, _) = pixels.as_chunks::<3>();
        let count = |colour: Colour| pixels.iter().filter(|it| **it == colour).count();
        assert_eq!((count([255, 0, 0]), count([0, 255, 0])), (40, 22));
        assert!(count([0, 0, 255]) > 20 && count([0, 0, 0]) == 0);
    }
}
