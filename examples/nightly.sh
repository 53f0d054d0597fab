#!/bin/sh
# At most one nightly run at a time: the script holds the lease itself and renews it between its steps.
set -eu
handle=$(mktemp -u "${TMPDIR:-/tmp}/nightly.XXXXXX")
TOKEN=$(tenure acquire nightly --ttl "${TTL:-60s}" --file "$handle")
trap 'tenure release --file "$handle"' EXIT
for step in dump compress upload; do
    echo "$step with token $TOKEN"      # send the token with every write
    sleep "${STEP:-1}"                  # the work: each step takes much less than the ttl
    tenure renew --file "$handle"       # if this fails, the lease is lost and set -e stops the script
done
