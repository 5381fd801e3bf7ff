//! Puts ink on the canvases that the page has handed over.

use std::collections::BTreeMap;

use kinetoscope::report::palette::Hue;
use kinetoscope::scene::{Anchor, Bar, Ink, Input, Tone};
use wasm_bindgen::{Clamped, JsCast, JsValue};
use web_sys::{ImageData, OffscreenCanvas, OffscreenCanvasRenderingContext2d};

use super::tones::Tones;
use crate::protocol::{CANVAS, Request, Surface};
use crate::wire;

/// The font of all labels.
const FONT: &str =
    "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";

struct Canvas {
    canvas: OffscreenCanvas,
    context: OffscreenCanvasRenderingContext2d,
    scale: f64,
}

/// The canvases of a worker, and the colours of the theme.
#[derive(Default)]
pub(super) struct Canvases {
    of: BTreeMap<Surface, Canvas>,
    tones: Tones,
}

impl Canvases {
    /// Takes what belongs to the canvas in a message: the canvas itself, its size, the colours.
    pub(super) fn take(&mut self, request: &Request, message: &JsValue) {
        let Request::Look { surface, input, .. } = request else { return };
        if let Some(canvas) = wire::attached(message, CANVAS)
            && let Ok(canvas) = canvas.dyn_into::<OffscreenCanvas>()
            && let Ok(Some(context)) = canvas.get_context("2d")
            && let Ok(context) = context.dyn_into()
        {
            self.of.insert(*surface, Canvas { canvas, context, scale: 1.0 });
        }
        match input {
            Input::Size { width, height, scale } => {
                if let Some(of) = self.of.get_mut(surface) {
                    of.scale = f64::from(*scale);
                    of.canvas.set_width((width * scale).round() as u32);
                    of.canvas.set_height((height * scale).round() as u32);
                }
            }
            Input::Colours(colours) => self.tones = Tones::of(colours),
            _ => {}
        }
    }

    /// Draws on a canvas, if the page has handed it over.
    pub(super) fn paint(&self, surface: Surface, ink: &[Ink]) {
        let Some(Canvas { context, scale, .. }) = self.of.get(&surface) else { return };
        // A canvas that cannot be drawn on shows nothing; there is nobody to tell.
        let _set = context.set_transform(*scale, 0.0, 0.0, *scale, 0.0, 0.0);
        context.set_font(FONT);
        context.set_line_width(1.5);
        let mut last = None;
        for ink in ink {
            self.put(context, *scale, ink, &mut last);
        }
    }

    fn put(
        &self,
        context: &OffscreenCanvasRenderingContext2d,
        scale: f64,
        ink: &Ink,
        last: &mut Option<Tone>,
    ) {
        match ink {
            Ink::Clear { width, height } => {
                context.clear_rect(0.0, 0.0, f64::from(*width), f64::from(*height));
            }
            Ink::Bars { x, y, height, bars } => self.bars(context, scale, (*x, *y, *height), bars),
            Ink::Box { x, y, width, height, tone } => {
                self.fill(context, *tone, last);
                let (x, y) = (f64::from(*x), f64::from(*y));
                context.fill_rect(x, y, f64::from(*width), f64::from(*height));
            }
            Ink::Line { points, tone } => {
                context.set_stroke_style_str(self.tones.colour(*tone));
                context.begin_path();
                for (at, (x, y)) in points.iter().enumerate() {
                    // Half a pixel makes a line of one pixel sharp.
                    let (x, y) = (f64::from(*x) + 0.5, f64::from(*y) + 0.5);
                    if at == 0 { context.move_to(x, y) } else { context.line_to(x, y) }
                }
                context.stroke();
            }
            Ink::Text { x, y, anchor, text, tone } => {
                self.fill(context, *tone, last);
                context.set_text_align(match anchor {
                    Anchor::Start => "left",
                    Anchor::Middle => "center",
                    Anchor::End => "right",
                });
                let _drawn = context.fill_text(text, f64::from(*x), f64::from(*y));
            }
        }
    }

    /// Pixels instead of boxes: a lane of bars is one call of the canvas and not one for each bar.
    fn bars(
        &self,
        context: &OffscreenCanvasRenderingContext2d,
        scale: f64,
        (x, y, height): (f32, f32, f32),
        bars: &[Option<Bar>],
    ) {
        let device = |length: f32| (f64::from(length) * scale).round();
        let (width, height_px) = (device(bars.len() as f32) as usize, device(height) as usize);
        let mut pixels = vec![0_u8; width * height_px * 4];
        let ground = self.tones.rgb(Tone::Ground);
        let hues = Hue::ALL.map(|hue| self.tones.rgb(Tone::Hue(hue)));
        for column in 0..width {
            let bar = bars.get((column as f64 / scale) as usize).copied().flatten();
            let filled = bar.map_or(0.0, |bar| f64::from(bar.share) * height_px as f64);
            let empty = height_px - (filled.round() as usize).min(height_px);
            let pale = bar.map_or(0.0, |bar| f64::from(bar.low) * height_px as f64);
            let pale = height_px - (pale.round() as usize).min(height_px);
            let colour = bar.map_or(ground, |bar| hues[bar.hue as usize]);
            let half = [0, 1, 2].map(|channel| u8::midpoint(ground[channel], colour[channel]));
            for row in 0..height_px {
                let [r, g, b] = match row {
                    row if row < empty => ground,
                    row if row < pale => half,
                    _ => colour,
                };
                let at = (row * width + column) * 4;
                pixels[at..at + 4].copy_from_slice(&[r, g, b, u8::MAX]);
            }
        }
        let pixels = Clamped(pixels.as_slice());
        if let Ok(image) = ImageData::new_with_u8_clamped_array(pixels, width as u32) {
            let _drawn = context.put_image_data(&image, device(x), device(y));
        }
    }

    /// Equal styles are set once.
    fn fill(
        &self,
        context: &OffscreenCanvasRenderingContext2d,
        tone: Tone,
        last: &mut Option<Tone>,
    ) {
        if *last != Some(tone) {
            context.set_fill_style_str(self.tones.colour(tone));
            *last = Some(tone);
        }
    }
}
