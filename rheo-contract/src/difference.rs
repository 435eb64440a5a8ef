//! How two long texts differ, in few lines.

use similar::TextDiff;

/// How many lines of a difference are shown.
const LINES: usize = 24;
/// How much of a long line is shown, and how much of that before the first difference.
const WIDTH: usize = 300;
const BEFORE: usize = 100;

/// The first lines that differ, and how many more there are.
pub(crate) fn difference(expected: &str, seen: &str) -> String {
    let column = column_of_the_first(expected, seen);
    let diff = TextDiff::from_lines(expected, seen)
        .unified_diff()
        .context_radius(2)
        .missing_newline_hint(false)
        .header("expected", "seen")
        .to_string();
    let shown: Vec<String> = diff
        .lines()
        .take(LINES)
        .map(|line| window(line, column))
        .collect();
    let mut text = shown.join("\n");
    match diff.lines().skip(LINES).count() {
        0 => {}
        more => text.push_str(&format!("\n… {more} more lines of the difference")),
    }
    text
}

/// How far into its line the first difference is, in bytes.
fn column_of_the_first(expected: &str, seen: &str) -> usize {
    let same = expected
        .bytes()
        .zip(seen.bytes())
        .take_while(|(a, b)| a == b);
    let at = same.count();
    let line = expected.as_bytes()[..at]
        .iter()
        .rposition(|byte| *byte == b'\n');
    line.map_or(at, |end| at - end - 1)
}

/// Of a long line of a diff its sign, and what is around that column.
fn window(line: &str, column: usize) -> String {
    if line.len() <= WIDTH {
        return line.to_owned();
    }
    let (sign, line) = line.split_at(1);
    let from = line.floor_char_boundary(column.saturating_sub(BEFORE));
    let to = line.floor_char_boundary(from + WIDTH);
    let (before, after) = (
        if from > 0 { "…" } else { "" },
        if to < line.len() { "…" } else { "" },
    );
    format!("{sign}{before}{}{after}", &line[from..to])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lines_the_first_are_shown() {
        let lines = |from: u32, to: u32| (from..=to).map(|n| format!("{n}\n")).collect::<String>();

        let text = difference(&lines(1, 1500), &lines(500, 1500));

        assert!(
            text.starts_with("--- expected\n+++ seen\n@@ -1,501 +1,2 @@\n-1\n-2\n"),
            "{text}"
        );
        assert!(
            text.ends_with("\n-21\n… 480 more lines of the difference"),
            "{text}"
        );
        assert_eq!(text.lines().count(), LINES + 1);
    }

    #[test]
    fn of_a_long_line_the_first_difference_is_shown() {
        let long = |end: &str| format!("a\n{}{end}{}", "ü".repeat(100_000), "x".repeat(100_000));

        let text = difference(&long("good"), &long("bad"));

        assert!(text.contains("-…") && text.contains("good"), "{text}");
        assert!(text.contains("+…") && text.contains("bad"), "{text}");
        assert!(text.len() < 4 * WIDTH, "{}", text.len());
    }

    #[test]
    fn what_is_short_is_shown_whole() {
        assert_eq!(
            difference("a\nb", "a\nc"),
            "--- expected\n+++ seen\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
        );
    }
}
