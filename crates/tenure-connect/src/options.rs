/// The options in the query of a URL. A list of risks, `accept=a,b`, is one option for each risk.
pub(crate) fn options(query: Option<&str>) -> impl Iterator<Item = String> {
    query.into_iter().flat_map(|query| query.split('&')).flat_map(|option| {
        match option.strip_prefix("accept=") {
            Some(risks) => risks.split(',').map(|risk| format!("accept={risk}")).collect(),
            None => vec![option.to_owned()],
        }
    })
}
