#!/bin/sh
# Postgres and two servers on it, as compose.yaml has them, without containers: from Debian's package postgresql and
# the Go of this computer, at the ports 8421 and 8422 of this computer (ONE and TWO name others), until Ctrl-C. What
# the database holds, and the keys of the servers, are kept in the folder DATA (.data/compose): the next run goes on.
set -eu
cd "$(dirname "$0")"

data=${DATA:-.data/compose} one=${ONE:-8421} two=${TWO:-8422}
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || { echo "no Postgres here: apt-get install postgresql" >&2; exit 1; }

# Postgres does not run as root.
as_postgres() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi; }

mkdir -p "$data"
data=$(cd "$data" && pwd)
sockets=$(mktemp -d)
if [ "$(id -u)" = 0 ]; then chmod 711 "$data" && chown postgres "$sockets"; fi
as_postgres test -x "$data" || { echo "the user postgres cannot enter $data: name another folder, as DATA=/var/tmp/dialai" >&2; exit 1; }
if [ ! -f "$data/keys" ]; then
	(umask 077 && printf 'DIALAI_API_TOKEN=%s\nDIALAI_SERVER_KEY=%s\n' "$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')" "$(head -c 32 /dev/urandom | base64)" >"$data/keys")
fi
. "$data/keys"
export DIALAI_API_TOKEN DIALAI_SERVER_KEY DATABASE_URL="postgres:///decisions?user=dialai&host=$sockets"

running=
end() {
	trap - EXIT INT TERM
	[ -z "$running" ] || kill $running 2>/dev/null || true # servers end what they do
	wait
	as_postgres "$bin/pg_ctl" -D "$data/database" -m fast -s stop 2>/dev/null || true
	rm -rf "$sockets"
}
trap end EXIT
trap 'end; exit 0' INT TERM

if [ ! -d "$data/database" ]; then
	mkdir "$data/database" && chmod 700 "$data/database"
	if [ "$(id -u)" = 0 ]; then chown postgres "$data/database"; fi
	as_postgres "$bin/initdb" -D "$data/database" -U dialai -A trust -E UTF8 --no-locale >/dev/null
fi
# Only who may enter the folder of its socket connects: it listens at no port.
as_postgres "$bin/pg_ctl" -D "$data/database" -s -w -l /dev/null -o "-c listen_addresses= -c unix_socket_directories=$sockets" start
"$bin/psql" -qAt -h "$sockets" -U dialai postgres -c "SELECT 1 FROM pg_database WHERE datname='decisions'" | grep -q . ||
	"$bin/createdb" -h "$sockets" -U dialai decisions

[ -n "${DIALAI:-}" ] || { go build -o "$data/dialai" ./cmd/dialai && DIALAI=$data/dialai; }
"$DIALAI" migrate
for port in "$one" "$two"; do
	XDG_DATA_HOME=$data "$DIALAI" serve --store env --listen "127.0.0.1:$port" &
	running="$running $!"
done
echo "the key of both is in $data/keys: . $data/keys; export DIALAI_API_TOKEN"
wait $running
