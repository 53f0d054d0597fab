//! The providers and servers of S3 that something is known about.
//!
//! An entry is knowledge of others, not a result of Tenure's tests: only `tenure probe` on the real bucket decides. The
//! entries without a host are servers that people run themselves.

use std::time::Duration;

use super::provider::Provider;

/// No limit is published for one object. Fifteen sequential conditional writes per second were measured; a tenth of a
/// second leaves a margin.
pub(super) const AWS: Provider = Provider {
    name: "AWS S3",
    hosts: &["amazonaws.com", "amazonaws.com.cn"],
    endpoint: "none: the region is enough",
    probe: "fit, by its documentation",
    limits: "3,500 writes a second for a prefix. Directory buckets (`--x-s3`) are refused",
    source: "docs.aws.amazon.com, conditional writes",
    date: "2026-08",
    write_interval: Duration::from_millis(100),
    header: None,
    refused: None,
};

const TIGRIS: Provider = Provider {
    name: "Tigris",
    hosts: &["tigris.dev", "t3.storage.dev"],
    endpoint: "`https://t3.storage.dev`",
    probe: "fit since its repair of April 2026; racing writes were lost before",
    limits: "reads and conditional writes need a header that Tenure sends",
    source: "tigrisdata.com/docs; firnflow, pull request 27",
    date: "2026-04",
    header: Some(("x-tigris-consistent", "true")),
    ..AWS
};

pub(super) const PROVIDERS: &[Provider] = &[
    AWS,
    Provider {
        name: "Cloudflare R2",
        hosts: &["r2.cloudflarestorage.com"],
        endpoint: "`https://ACCOUNT.r2.cloudflarestorage.com`",
        probe: "fit, by its documentation",
        limits: "one write per second and object, 429 above it. A custom domain may cache: not for leases",
        source: "developers.cloudflare.com/r2",
        date: "2026-08",
        write_interval: Duration::from_millis(1100),
        ..AWS
    },
    TIGRIS,
    Provider {
        name: "DigitalOcean Spaces",
        hosts: &["digitaloceanspaces.com"],
        endpoint: "`https://REGION.digitaloceanspaces.com`",
        probe: "fit only with `etags=bare`, if at all: a second report says that it ignores `If-Match`",
        limits: "not known",
        source: "slatedb, issue 1818; celld, issue 137",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "Backblaze B2",
        hosts: &["backblazeb2.com"],
        endpoint: "`https://s3.REGION.backblazeb2.com`",
        probe: "not fit: it answers conditional writes with 501",
        limits: "none that matter",
        source: "lance, issue 5614",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "Google Cloud Storage",
        // With the bucket in front, and for regions, private networks and client certificates.
        hosts: &["googleapis.com"],
        endpoint: "`https://storage.googleapis.com`",
        probe: "refused at connect: its S3 interface ignores the conditions of writes. Use [`gs://`](google.md)",
        limits: "none that matter",
        source: "icechunk, issue 533",
        date: "2026-08",
        refused: Some(
            "Google's S3 interface ignores the conditions of writes, so two contenders could be granted the same lease: \
             use Google's own interface, with gs://BUCKET",
        ),
        ..AWS
    },
    Provider {
        name: "OVHcloud",
        hosts: &["cloud.ovh.net", "cloud.ovh.us"],
        endpoint: "`https://s3.REGION.io.cloud.ovh.net`",
        probe: "fit since June 2026, by its documentation",
        limits: "409 under contention",
        source: "docs.ovhcloud.com; ovh public-cloud-roadmap, issue 671",
        date: "2026-06",
        ..AWS
    },
    Provider {
        name: "Scaleway",
        hosts: &["scw.cloud"],
        endpoint: "`https://s3.REGION.scw.cloud`",
        probe: "fit since July 2026, by its documentation",
        limits: "not known",
        source: "scaleway.com/en/docs",
        date: "2026-07",
        ..AWS
    },
    Provider {
        name: "Selectel",
        hosts: &["selcloud.ru"],
        endpoint: "`https://s3.REGION.storage.selcloud.ru`",
        probe: "fit, by its documentation",
        limits: "not known",
        source: "docs.selectel.ru",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "CoreWeave",
        hosts: &["cwobject.com", "cwlota.com"],
        endpoint: "`https://cwobject.com`",
        probe: "fit since March 2026, by its documentation",
        limits: "the loser of a race gets 409 and reads back",
        source: "docs.coreweave.com",
        date: "2026-03",
        ..AWS
    },
    Provider {
        name: "Hetzner",
        hosts: &["your-objectstorage.com"],
        endpoint: "`https://REGION.your-objectstorage.com`",
        probe: "not fit, by a report",
        limits: "not known",
        source: "celld, docs/fencing.md",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "STACKIT",
        hosts: &["onstackit.cloud"],
        endpoint: "`https://object.storage.REGION.onstackit.cloud`",
        probe: "not fit: it ignores conditions, by a report",
        limits: "not known",
        source: "terraform-provider-stackit, issue 1534",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "Open Telekom Cloud",
        hosts: &["otc.t-systems.com"],
        endpoint: "`https://obs.REGION.otc.t-systems.com`",
        probe: "not fit: it ignores conditions, by a report",
        limits: "not known",
        source: "terraform-provider-opentelekomcloud, issue 3328",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "Alibaba OSS",
        hosts: &["aliyuncs.com"],
        endpoint: "`https://oss-REGION.aliyuncs.com`",
        probe: "not fit: it has its own header instead of `If-None-Match`",
        limits: "not known",
        source: "undocumented-s3-apis, issue 4",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "Tencent COS",
        hosts: &["myqcloud.com"],
        endpoint: "`https://cos.REGION.myqcloud.com`",
        probe: "not fit: it has its own header instead of `If-None-Match`",
        limits: "not known",
        source: "undocumented-s3-apis, issue 4",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "Oracle Cloud",
        hosts: &["oraclecloud.com"],
        endpoint: "`https://NAMESPACE.compat.objectstorage.REGION.oraclecloud.com`",
        probe: "not known: reports contradict each other",
        limits: "not known",
        source: "terraform, issue 36742",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "Wasabi",
        hosts: &["wasabisys.com"],
        endpoint: "`https://s3.REGION.wasabisys.com`",
        probe: "not known",
        limits: "not known",
        source: "no report found",
        date: "2026-09",
        ..AWS
    },
    Provider {
        name: "MinIO",
        hosts: &[],
        endpoint: "your own",
        probe: "fit: tested with every change. Older than September 2025: `If-Match` creates a missing object",
        limits: "no community build checks conditions while it cannot read a quorum of its disks",
        source: "Tenure's tests; its source of February 2026",
        date: "2026-11",
        ..AWS
    },
    Provider {
        name: "SeaweedFS",
        hosts: &[],
        endpoint: "your own",
        probe: "fit from 4.18 on: 4.48 is tested with every change. Racing writes are lost before",
        limits: "a race on one object is slow",
        source: "Tenure's tests; its source",
        date: "2026-11",
        ..AWS
    },
    Provider {
        name: "Ceph RGW",
        hosts: &[],
        endpoint: "your own",
        probe: "fit with `etags=bare` (16.2, tested by hand)",
        limits: "500 or 409 under contention. Not with suspended versioning; one zone only",
        source: "Tenure's tests; ceph, pull request 71584",
        date: "2026-11",
        ..AWS
    },
    Provider {
        name: "Garage",
        hosts: &[],
        endpoint: "your own",
        probe: "not fit: it ignores the conditions of writes",
        limits: "none that matter",
        source: "its source, 1.2",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "RustFS, versitygw",
        hosts: &[],
        endpoint: "your own",
        probe: "not fit in older versions: races had several winners. Probe yours",
        limits: "not known",
        source: "rustfs, issue 1659; versitygw, pull request 2288",
        date: "2026-08",
        ..AWS
    },
    Provider {
        name: "rclone serve s3",
        hosts: &[],
        endpoint: "your own",
        probe: "not fit: it ignores conditions; tested with every change",
        limits: "none that matter",
        source: "Tenure's tests",
        date: "2026-11",
        ..AWS
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- providers: begin. Made by src/s3/providers.rs of tenure-object: UPDATE_DOCS=1 cargo \
                         test -p tenure-object providers -->\n";
    const END: &str = "<!-- providers: end -->";
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stores/s3.md");

    #[test]
    fn the_page_shows_what_is_known_about_each_provider() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the table");
        let (_, after) = rest.split_once(END).expect("the table has an end");
        let mut table = String::from(
            "| provider or server | endpoint | what `tenure probe` is expected to say | limits | source |\n\
             | --- | --- | --- | --- | --- |\n",
        );
        for Provider { name, endpoint, probe, limits, source, date, .. } in PROVIDERS {
            table += &format!("| {name} | {endpoint} | {probe} | {limits} | {source}, {date} |\n");
        }
        let expected = format!("{before}{BEGIN}{table}{END}{after}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(PAGE, &expected).unwrap();
        }
        let page = std::fs::read_to_string(PAGE).unwrap();
        assert!(page == expected, "run it once more with UPDATE_DOCS=1, and review the difference");
    }
}
