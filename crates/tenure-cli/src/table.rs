//! A table with aligned columns.

use clap::builder::styling::Style;
use unicode_width::UnicodeWidthStr;

/// The table as text. Numbers, in the third column, are right-aligned. The last column is not padded, so it may have
/// styles.
pub(crate) fn lines<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([head[column].width()]).max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let bold = Style::new().bold();
    let mut text = format!("{bold}{}{bold:#}\n", line(head, &widths));
    for row in &rows {
        text.push_str(&line(row.each_ref().map(String::as_str), &widths));
        text.push('\n');
    }
    text
}

fn line<const N: usize>(cells: [&str; N], widths: &[usize; N]) -> String {
    let mut line = String::new();
    for (at, cell) in cells.into_iter().enumerate() {
        let room = " ".repeat(widths[at].saturating_sub(cell.width()));
        match at {
            _ if at == N - 1 => line.push_str(cell),
            NUMBERS => line.extend([&room, cell, GAP]),
            _ => line.extend([cell, &room, GAP]),
        }
    }
    line
}

/// The column of numbers.
const NUMBERS: usize = 2;

const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_for_characters_of_any_width() {
        let rows = [["a", "Ünï", "7", "x"], ["键/键", "b", "1000", "long last cell"]];
        let rows = rows.map(|row| row.map(str::to_owned)).to_vec();
        let table = anstream::adapter::strip_str(&lines(["NAME", "WHO", "NO", "S"], rows)).to_string();
        let expected = "\
NAME   WHO    NO  S
a      Ünï     7  x
键/键  b    1000  long last cell
";
        assert_eq!(table, expected);
    }
}
