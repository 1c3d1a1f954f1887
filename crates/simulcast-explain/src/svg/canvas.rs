//! A canvas: elements in the order they are drawn, and how far they reach.
//!
//! It is the only writer of markup, so that every text is escaped and the picture is always as
//! large as what is on it.

use std::fmt::Write as _;

use super::style;
use super::text::{escape, width};

/// The space around everything.
pub(crate) const MARGIN: usize = 24;

/// The fonts of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Font {
    /// The heading.
    Title,
    /// Sentences.
    Text,
    /// Small print.
    Small,
    /// Code words, such as names, shapes and codes of findings.
    Code,
    /// What stands in a cell, centred.
    Cell,
    /// Numbers beside cells, centred.
    Tick,
}

impl Font {
    /// The class, and the size in pixels.
    pub(crate) const fn class(self) -> (&'static str, usize) {
        match self {
            Self::Title => ("sc-title", 16),
            Self::Text => ("sc-text", 12),
            Self::Small => ("sc-small", 11),
            Self::Code => ("sc-code", 12),
            Self::Cell => ("sc-cell", 11),
            Self::Tick => ("sc-tick", 10),
        }
    }

    /// About how wide a text is in it.
    pub(crate) fn width(self, text: &str) -> usize {
        let (_, size) = self.class();
        match self {
            Self::Code | Self::Cell => width(text, size, true),
            Self::Text | Self::Small | Self::Tick => width(text, size, false),
            // Bold letters are wider.
            Self::Title => width(text, size, false) * 11 / 10,
        }
    }
}

/// A place and an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Canvas {
    body: String,
    right: usize,
    bottom: usize,
}

impl Canvas {
    /// How far the picture reaches to the right.
    pub(crate) fn right(&self) -> usize {
        self.right
    }

    /// How far the picture reaches down.
    pub(crate) fn bottom(&self) -> usize {
        self.bottom
    }

    /// Makes the picture reach at least that far.
    pub(crate) fn reach(&mut self, x: usize, y: usize) {
        self.right = self.right.max(x);
        self.bottom = self.bottom.max(y);
    }

    /// A text that starts at `x`, or is centred there, with its base line at `y`.
    pub(crate) fn text(&mut self, font: Font, x: usize, y: usize, text: &str) {
        let (class, size) = font.class();
        self.element("text", &[("class", class)], x, y);
        let _ = writeln!(self.body, ">{}</text>", escape(text, false));
        let drawn = match font {
            Font::Cell | Font::Tick => font.width(text) / 2,
            Font::Title | Font::Text | Font::Small | Font::Code => font.width(text),
        };
        self.reach(x + drawn, y + size / 2);
    }

    /// A box, with attributes for scripts.
    pub(crate) fn rect(&mut self, class: &str, area: Area, data: &[(&str, &str)]) {
        let Area { x, y, width, height } = area;
        self.element("rect", &[("class", class)], x, y);
        let _ = write!(self.body, " width=\"{width}\" height=\"{height}\" rx=\"4\"");
        self.attributes(data);
        self.body.push_str("/>\n");
        self.reach(x + width, y + height);
    }

    /// A path; the caller knows where it leads and what it reaches.
    pub(crate) fn path(&mut self, class: &str, d: &str) {
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    /// Begins a group.
    pub(crate) fn open(&mut self, class: &str, data: &[(&str, &str)]) {
        let _ = write!(self.body, "<g class=\"{class}\"");
        self.attributes(data);
        self.body.push_str(">\n");
    }

    /// Ends a group.
    pub(crate) fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    fn element(&mut self, name: &str, attributes: &[(&str, &str)], x: usize, y: usize) {
        let _ = write!(self.body, "<{name}");
        self.attributes(attributes);
        let _ = write!(self.body, " x=\"{x}\" y=\"{y}\"");
    }

    fn attributes(&mut self, attributes: &[(&str, &str)]) {
        for (name, value) in attributes {
            let _ = write!(self.body, " {name}=\"{}\"", escape(value, false));
        }
    }

    /// The whole picture. It carries no ids, so that several can stand on one page.
    pub(crate) fn finish(self, title: &str, description: &str) -> String {
        let (width, height) = (self.right + MARGIN, self.bottom + MARGIN);
        let mut out = String::with_capacity(self.body.len() + 8_000);
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"simulcast\" role=\"img\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
        );
        let _ = writeln!(out, "<title>{}</title>", escape(title, false));
        let _ = writeln!(out, "<desc>{}</desc>", escape(description, false));
        let _ = writeln!(out, "<style>\n{}</style>", style::CSS);
        let _ = writeln!(
            out,
            "<rect class=\"sc-paper\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>"
        );
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }
}
