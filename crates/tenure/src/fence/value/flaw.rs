/// The reason why bytes are not a fenced value. They are never overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueFlaw {
    #[error("it is not a fenced value, and another program wrote it. Move it away, or choose another name")]
    NotOurs,
    #[error("it is the record of a lease or a plain key. Choose another name")]
    Record,
    #[error("a later version of Tenure wrote it, in format {0}. Use that version")]
    Later(u64),
    #[error("its first line cannot be understood. Inspect it, and restore it from a backup")]
    Malformed,
    #[error(
        "it has {has} bytes of content, and its first line says {says}. Inspect it, and restore it from a backup"
    )]
    Length { says: usize, has: usize },
}
