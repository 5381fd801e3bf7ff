//! A picture as an SVG: the same ink as on the canvas, text as text.

use std::fmt::Write;

use kinetoscope::report::palette::Hue;
use kinetoscope::scene::{Anchor, Bar, Ink, Tone};

use super::tones::Tones;

const FONT: &str =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";

/// A picture of a size in px, in CSS pixels. `title` is for people who do not see it.
pub(super) fn svg((width, height): (f32, f32), title: &str, ink: &[Ink], tones: &Tones) -> String {
    let (w, h) = (number(width), number(height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"{FONT}\" font-size=\"12\" role=\"img\">\n<title>{}</title>\n",
        escaped(title)
    );
    for ink in ink {
        put(&mut out, ink, tones);
    }
    out.push_str("</svg>\n");
    out
}

fn put(out: &mut String, ink: &Ink, tones: &Tones) {
    // (A text takes everything that is written to it.)
    let _written = match ink {
        Ink::Clear { .. } => Ok(()),
        Ink::Box { x, y, width, height, tone } => {
            if *width <= 0.0 || *height <= 0.0 {
                return;
            }
            let fill = paint("fill", tones.colour(*tone));
            writeln!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{fill}/>",
                number(*x),
                number(*y),
                number(*width),
                number(*height)
            )
        }
        Ink::Bars { x, y, height, bars: all } => {
            bars(out, (*x, *y, *height), all, tones);
            Ok(())
        }
        Ink::Line { points, tone } => {
            let points: Vec<String> =
                points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
            let stroke = paint("stroke", tones.colour(*tone));
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke-width=\"1.5\"{stroke}/>",
                points.join(" ")
            )
        }
        Ink::Text { x, y, anchor, text, tone } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let fill = paint("fill", tones.colour(*tone));
            let text = escaped(text);
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\"{anchor}{fill}>{text}</text>",
                number(*x),
                number(*y)
            )
        }
    };
}

/// The bars of each hue are one path; equal ones next to each other are one box of it.
fn bars(out: &mut String, (x, y, height): (f32, f32, f32), bars: &[Option<Bar>], tones: &Tones) {
    let ground = Ink::Box { x, y, width: bars.len() as f32, height, tone: Tone::Ground };
    put(out, &ground, tones);
    for hue in Hue::ALL {
        let (mut path, mut pale) = (String::new(), String::new());
        let mut at = 0;
        while let Some(bar) = bars.get(at) {
            let n = bars[at..].iter().take_while(|other| *other == bar).count();
            if let Some(bar) = bar.filter(|bar| bar.hue == hue) {
                let left = number(x + at as f32);
                let part = |path: &mut String, from: f32, to: f32| {
                    let (top, filled) = (number(y + height - to), number(to - from));
                    let _written = write!(path, "M{left} {top}h{n}v{filled}h-{n}z");
                };
                part(&mut path, 0.0, height * bar.low);
                if bar.low < bar.share {
                    part(&mut pale, height * bar.low, height * bar.share);
                }
            }
            at += n;
        }
        for (path, opacity) in [(path, ""), (pale, " fill-opacity=\"0.5\"")] {
            if !path.is_empty() {
                let fill = paint("fill", tones.colour(Tone::Hue(hue)));
                let _written = writeln!(out, "<path d=\"{path}\"{fill}{opacity}/>");
            }
        }
    }
}

/// A colour as programs other than browsers read it: without a transparent part in it.
fn paint(of: &str, colour: &str) -> String {
    let Some(parts) = colour.strip_prefix("rgba(").and_then(|parts| parts.strip_suffix(')')) else {
        return format!(" {of}=\"{}\"", escaped(colour));
    };
    let mut parts = parts.split(',').map(str::trim);
    let mut next = || escaped(parts.next().unwrap_or("0"));
    format!(" {of}=\"rgb({},{},{})\" {of}-opacity=\"{}\"", next(), next(), next(), next())
}

/// px with two digits after the point at most.
fn number(px: f32) -> String {
    let hundredths = (f64::from(px) * 100.0).round() as i64;
    let (sign, whole, part) =
        (if hundredths < 0 { "-" } else { "" }, hundredths.abs() / 100, hundredths.abs() % 100);
    match part {
        0 => format!("{sign}{whole}"),
        part if part % 10 == 0 => format!("{sign}{whole}.{}", part / 10),
        part => format!("{sign}{whole}.{part:02}"),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no place for these, not even escaped.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tones() -> Tones {
        let colours = [
            ("ground", "rgb(255, 255, 255)"),
            ("selected", "rgba(0, 99, 156, 0.18)"),
            ("gemm", "rgb(0, 114, 178)"),
        ];
        Tones::of(&colours.map(|(name, colour)| (name.to_owned(), colour.to_owned())))
    }

    #[test]
    fn names_of_kernels_are_text_that_xml_can_hold() {
        let text = "void gemm<float, \"a\" & b>\u{1}".to_owned();
        let ink =
            Ink::Text { x: 1.5, y: -2.25, anchor: Anchor::End, text, tone: Tone::OnHue(Hue::Gemm) };
        let svg = svg((10.0, 20.0), "a < b", &[ink], &tones());
        assert!(svg.contains("<title>a &lt; b</title>"), "{svg}");
        let line = "<text x=\"1.5\" y=\"-2.25\" text-anchor=\"end\" fill=\"#fff\">void gemm&lt;float, &quot;a&quot; &amp; b&gt; </text>";
        assert!(svg.contains(line), "{svg}");
    }

    #[test]
    fn equal_bars_are_one_box_and_a_transparent_colour_has_its_own_attribute() {
        let bar = |share| Some(Bar { hue: Hue::Gemm, share, low: share });
        let bars = vec![bar(0.5), bar(0.5), None, bar(1.0)];
        let ink = [
            Ink::Bars { x: 0.0, y: 10.0, height: 20.0, bars },
            Ink::Box { x: 0.0, y: 0.0, width: 1.0, height: 1.0, tone: Tone::Selected },
        ];
        let svg = svg((10.0, 20.0), "", &ink, &tones());
        assert!(
            svg.contains("<path d=\"M0 20h2v10h-2zM3 10h1v20h-1z\" fill=\"rgb(0, 114, 178)\"/>"),
            "{svg}"
        );
        assert!(svg.contains("fill=\"rgb(0,99,156)\" fill-opacity=\"0.18\""), "{svg}");
        let bars = vec![Some(Bar { hue: Hue::Gemm, share: 0.75, low: 0.25 })];
        let svg = super::svg(
            (10.0, 20.0),
            "",
            &[Ink::Bars { x: 0.0, y: 0.0, height: 20.0, bars }],
            &tones(),
        );
        assert!(
            svg.contains(
                "<path d=\"M0 5h1v10h-1z\" fill=\"rgb(0, 114, 178)\" fill-opacity=\"0.5\"/>"
            ),
            "{svg}"
        );
        assert!(svg.contains("<path d=\"M0 15h1v5h-1z\" fill=\"rgb(0, 114, 178)\"/>"), "{svg}");
    }
}
