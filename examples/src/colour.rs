//! Colours: when they are used, and for what.

use console::Style;

/// When output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Not at all
    Never,
}

impl ColourChoice {
    /// Makes it the choice of the program.
    pub fn apply(self) {
        let on = match self {
            Self::Auto => return,
            Self::Always => true,
            Self::Never => false,
        };
        console::set_colors_enabled(on);
        console::set_colors_enabled_stderr(on);
    }
}

/// What a piece of the answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// It was drafted, and the target agreed.
    pub drafted: bool,
    /// It is what the model thinks before it answers.
    pub reasoning: bool,
}

impl Piece {
    /// How it is shown.
    pub fn style(self) -> Style {
        let style = if self.drafted { Style::new().green() } else { Style::new() };
        if self.reasoning { style.dim() } else { style }
    }
}
