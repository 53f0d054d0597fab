/// True for the lines that every run that is granted writes to a log, and not to a terminal.
pub(crate) fn is_log_line(line: &str) -> bool {
    let line = line.trim_end();
    line.starts_with("tenure: ")
        && (line.contains(" is granted, with token ") || line.ends_with(" is released"))
}

/// Standard error without these lines.
pub(crate) fn without_log_lines(err: &str) -> String {
    err.split_inclusive('\n').filter(|line| !is_log_line(line)).collect()
}
