//! Small tables for the terminal.

use console::{measure_text_width, style};

/// Which side of a column its text is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Prints a table with a heading to standard output.
pub(crate) fn print(columns: &[(&str, Align)], rows: &[Vec<String>]) {
    let heading: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let widths: Vec<usize> = (0..columns.len()).map(|column| width(column, &heading, rows)).collect();
    println!("{}", style(line(columns, &widths, &heading)).bold());
    println!("{}", widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  "));
    rows.iter().for_each(|row| println!("{}", line(columns, &widths, row)));
}

fn width(column: usize, heading: &[String], rows: &[Vec<String>]) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column)).chain(heading.get(column));
    cells.map(|cell| measure_text_width(cell)).max().unwrap_or(0)
}

fn line(columns: &[(&str, Align)], widths: &[usize], cells: &[String]) -> String {
    let padded = cells.iter().zip(columns).zip(widths).map(|((cell, (_, align)), width)| {
        let space = " ".repeat(width.saturating_sub(measure_text_width(cell)));
        if *align == Align::Left { format!("{cell}{space}") } else { format!("{space}{cell}") }
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let columns = [("name", Align::Left), ("n", Align::Right)];
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["longer".to_owned(), "9".to_owned()]];
        let heading = ["name".to_owned(), "n".to_owned()];
        let widths = [width(0, &heading, &rows), width(1, &heading, &rows)];
        assert_eq!(widths, [6, 2]);
        assert_eq!(line(&columns, &widths, &rows[0]), "a       10");
        assert_eq!(line(&columns, &widths, &rows[1]), "longer   9");
    }
}
