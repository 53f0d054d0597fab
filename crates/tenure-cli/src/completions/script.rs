//! The part of a completion script that asks `tenure` for names.

use clap_complete::Shell;

/// The generated script, which also offers the names in the store, if the shell is one of those that can.
pub(super) fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{BASH}\n{}", script.replacen("_tenure() {", "_tenure_options() {", 1)),
        Shell::Zsh => zsh(script),
        Shell::Fish => format!("{script}\n{FISH}"),
        _ => script.to_owned(),
    }
}

/// Replaces the completion of each argument that is the name of a lease, a group or a plain key.
fn zsh(script: &str) -> String {
    let is_name = |line: &str| {
        let ids = ["name", "prefix", "group", "key"];
        let argument = line.trim_start_matches("'").trim_start_matches(':');
        line.starts_with("':") && ids.iter().any(|id| argument.starts_with(&format!("{id} -- ")))
    };
    let mut lines = String::new();
    for line in script.lines() {
        let line =
            if is_name(line) { line.replace(":_default'", ":_tenure_names'") } else { line.to_owned() };
        lines.push_str(&line);
        lines.push('\n');
        match line.as_str() {
            "autoload -U is-at-least" => lines.push_str(ZSH_NAMES),
            "_tenure() {" => lines.push_str(ZSH_WORDS),
            _ => {}
        }
    }
    lines
}

/// Names contain no character that a shell interprets, so they are offered as they are.
const BASH: &str = r#"_tenure() {
    local name before=$((COMP_CWORD - 1))
    # After a colon, the colon is the current word, and the word to complete is empty.
    if [[ -z $2 && ${COMP_WORDS[COMP_CWORD]} == [:=]* ]]; then
        before=$COMP_CWORD
    fi
    COMPREPLY=()
    while IFS= read -r name; do
        COMPREPLY+=("$name")
    done < <("$1" complete-names "${COMP_WORDS[@]:1:before}" "$2" 2>/dev/null </dev/null)
    [[ ${#COMPREPLY[@]} -gt 0 ]] || _tenure_options "$@"
}
"#;

/// The words before the cursor, before the functions of subcommands cut them.
const ZSH_WORDS: &str = r#"    typeset -ga _tenure_words
    _tenure_words=("${(@Q)words[1,CURRENT-1]}")
"#;

const ZSH_NAMES: &str = r#"
_tenure_names() {
    local -a names
    names=(${(f)"$("$_tenure_words[1]" complete-names "${(@)_tenure_words[2,-1]}" "$PREFIX" 2>/dev/null </dev/null)"})
    if (( $#names )); then compadd -a names; else _default; fi
}
"#;

const FISH: &str = r#"function __tenure_names
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] complete-names $words[2..-1] "$current" 2>/dev/null </dev/null
end

complete -c tenure -n "not __fish_tenure_needs_command" -a "(__tenure_names)"
"#;
