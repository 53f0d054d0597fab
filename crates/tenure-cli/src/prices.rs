use tenure::Error;
use tenure_connect::StoreUrl;
use tenure_store::Reach;

/// Charge of a store for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// None: the store is local.
    Nothing,
    /// A price per request.
    Each(Prices),
    /// Not known: a private server, or a provider that is not in the table.
    Unknown,
}

/// Prices of a provider, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prices {
    /// The provider, and the region if prices differ.
    pub(crate) of: &'static str,
    /// Date of the prices, as `2026-09`.
    pub(crate) date: &'static str,
    /// For one write: a PUT, refused or not.
    pub(crate) write: u64,
    /// For one read: a GET, including one that is answered with "not modified".
    pub(crate) read: u64,
    /// The free allowance, in words.
    pub(crate) free: Option<&'static str>,
}

impl Charge {
    /// The charge of a store. Sends nothing.
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, Error> {
        if url.guarantees()?.reach < Reach::Network {
            return Ok(Self::Nothing);
        }
        Ok(url.provider()?.and_then(Prices::of).map_or(Self::Unknown, Self::Each))
    }
}

impl Prices {
    /// The prices of a provider, if they are in the table.
    pub(crate) fn of(provider: &str) -> Option<Self> {
        TABLE.iter().find(|prices| prices.of.starts_with(provider)).copied()
    }
}

const TABLE: &[Prices] = &[
    Prices { of: "AWS S3, us-east-1", date: "2026-09", write: 5_000, read: 400, free: None },
    Prices { of: "Google Cloud Storage, one region", date: "2026-09", write: 5_000, read: 400, free: None },
    Prices {
        of: "Azure Blob Storage, hot tier, by the sample prices in Microsoft's documentation of 2024-07",
        date: "2026-11",
        write: 5_500,
        read: 440,
        free: None,
    },
    Prices {
        of: "Cloudflare R2",
        date: "2026-06",
        write: 4_500,
        read: 360,
        free: Some("the first million writes and ten million reads of an account in a month are free"),
    },
    Prices {
        of: "Tigris",
        date: "2026-06",
        write: 5_000,
        read: 500,
        free: Some("the first 10,000 writes and 100,000 reads of an account in a month are free"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_is_not_in_the_table_has_no_prices() {
        assert_eq!(Prices::of("Cloudflare R2").unwrap().write, 4_500);
        let google = Prices::of("Google Cloud Storage").unwrap();
        assert_eq!((google.write, google.read), (5_000, 400), "classes A and B");
        assert_eq!(Prices::of("another provider"), None);
    }

    #[test]
    fn every_price_has_its_month() {
        for prices in TABLE {
            let (year, month) = prices.date.split_once('-').unwrap();
            assert!(year.parse::<u32>().unwrap() >= 2026 && (1..=12).contains(&month.parse().unwrap()));
        }
    }
}
