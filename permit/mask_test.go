package permit

import (
	"strings"
	"testing"
)

// TestPasswordsAreMasked: a password on a command line is not kept, and what else stands there
// is as it was.
func TestPasswordsAreMasked(t *testing.T) {
	const pw = "hunter2!x"
	for line, want := range map[string]string{
		"mysql -u root -p@@ shop":                            "mysql -u root -p* shop",
		"curl -su me:@@ https://x":                           "curl -su me:* https://x",
		`curl -H Authorization:\ Basic\ @@ https://x`:        `curl -H Authorization:\ Basic\ * https://x`,
		"curl --oauth2-bearer @@ https://x":                  "curl --oauth2-bearer * https://x",
		"curl -H 'Cookie: @@' https://x":                     "curl -H 'Cookie: *' https://x",
		"kubectl create secret x --from-literal=password=@@": "kubectl create secret x --from-literal=password=*",
		"echo @@ | docker login --password-stdin":            "echo * | docker login --password-stdin",
		"echo '@@' | sudo -S ls":                             "echo '*' | sudo -S ls",
		"openssl enc -k @@ -in a":                            "openssl enc -k * -in a",
		"smbclient -U me%@@ //x/y":                           "smbclient -U me%* //x/y",
		"cat <<EOF > a\npassword: @@\nport: 1\nEOF":          "cat <<EOF > a\npassword: *\nport: 1\nEOF",
		"mysql -u root -p shop":                              "mysql -u root -p shop",
		"mysqldump -h db --password=@@ shop":                 "mysqldump -h db --password=* shop",
		"tool --password @@ run":                             "tool --password * run",
		"tool --password='@@ y' run":                         "tool --password='*' run",
		"tool --password '@@ y' run":                         "tool --password '*' run",
		"tool --api-key @@ --token @@":                       "tool --api-key * --token *",
		"curl -u me:@@ https://x":                            "curl -u me:* https://x",
		"curl -ume:@@ https://x":                             "curl -ume:* https://x",
		"curl --user 'me:@@' https://x":                      "curl --user 'me:*' https://x",
		"curl --user=me:@@ https://x":                        "curl --user=me:* https://x",
		"curl -H 'Authorization: Basic @@' https://x":        "curl -H 'Authorization: Basic *' https://x",
		`curl -H "Authorization: Bearer $TOKEN" https://x`:   `curl -H "Authorization: Bearer $TOKEN" https://x`,
		"git clone https://me:@@@host/x":                     "git clone https://me:*@host/x",
		"git clone https://me:$@@@host/x":                    "git clone https://me:$@@@host/x",
		"PGPASSWORD=@@ psql -h db":                           "PGPASSWORD=* psql -h db",
		"PGPASSWORD='@@ y' psql -h db":                       "PGPASSWORD='*' psql -h db",
		"PGPASSWORD=$(pass db) psql":                         "PGPASSWORD=$(pass db) psql",
		"export DB_PASSWORD=@@; make":                        "export DB_PASSWORD=*; make",
		"env MYSQL_PWD=@@ mysql shop":                        "env MYSQL_PWD=* mysql shop",
		"docker run -e API_TOKEN=@@ x":                       "docker run -e API_TOKEN=* x",
		"docker login -u me -p @@":                           "docker login -u me -p *",
		"sshpass -p @@ ssh host ls":                          "sshpass -p * ssh host ls",
		"sudo mysql -p@@":                                    "sudo mysql -p*",
		"sh -c 'mysql -p@@ shop'":                            "sh -c 'mysql -p* shop'",
		`sh -c "PGPASSWORD=@@ psql; ls"`:                     `sh -c "PGPASSWORD=* psql; ls"`,
		"x=$(mysql -p@@ -e q); echo $x":                      "x=$(mysql -p* -e q); echo $x",
		`curl -d '{"user":"me","password":"@@"}' https://x`:  `curl -d '{"user":"me","password":"*"}' https://x`,
		"curl -d 'user=me&password=@@&x=1' https://x":        "curl -d 'user=me&password=*&x=1' https://x",
		"curl 'https://x/?api_key=@@&q=1'":                   "curl 'https://x/?api_key=*&q=1'",
		"openssl enc -pass pass:@@ -in a":                    "openssl enc -pass pass:* -in a",
		"mysql -p@@ 'unclosed":                               "mysql -p* 'unclosed",
		"tool --password @@ 'unclosed":                       "tool --password * 'unclosed",
		"mkdir -p sub/x && cp -p a b":                        "mkdir -p sub/x && cp -p a b",
		"http -a me:@@ https://x":                            "http -a me:* https://x",
		"http --auth=me:@@ https://x":                        "http --auth=me:* https://x",
		"http --auth me:@@ https://x":                        "http --auth me:* https://x",
		`net use z: \\\\srv\\share @@ /user:me`:              `net use z: \\\\srv\\share * /user:me`,
		`net use \\\\srv\\share @@`:                          `net use \\\\srv\\share *`,
		"net use z: /delete":                                 "net use z: /delete",
		"docker run -p 80:80 x":                              "docker run -p 80:80 x",
	} {
		if got := maskLine(strings.ReplaceAll(line, "@@", pw)); got != strings.ReplaceAll(strings.ReplaceAll(want, "@@", pw), "*", redacted) {
			t.Errorf("%s\n is   %s\n want %s", line, got, want)
		}
	}
}

// TestMembersAreMasked: what a member's name says is a secret is not kept, in any tool, at any
// depth, nor what arguments and the agent's suggestions hold.
func TestMembersAreMasked(t *testing.T) {
	for _, c := range []struct {
		input, want string
		shell       bool
	}{
		{`{"password":"hunter2","a":1}`, `{"password":"*","a":1}`, false},
		{`{"db":{"passwd":12345,"user":"me"},"Api_Key":["x1","x2"]}`, `{"db":{"passwd":"*","user":"me"},"Api_Key":["*","*"]}`, false},
		{`{"apiKey":"x","secret":"y","token":"z","authorization":"Basic abc"}`, `{"apiKey":"*","secret":"*","token":"*","authorization":"*"}`, false},
		{`{"url":"https://me:hunter2@host/x"}`, `{"url":"https://me:*@host/x"}`, false},
		{`{"command":["mysql","-phunter2","shop"]}`, `{"command":["mysql","-p*","shop"]}`, true},
		{`{"command":["bash","-lc","mysql -phunter2 shop"]}`, `{"command":["bash","-lc","mysql -p* shop"]}`, true},
		{`{"content":"{\"password\": \"hunter2\"}"}`, `{"content":"{\"password\": \"*\"}"}`, false},
		{`{"content":"DB_PASSWORD=hunter2\nPORT=1\n  token: string;"}`, `{"content":"DB_PASSWORD=*\nPORT=1\n  token: string;"}`, false},
		{`{"tokens":3,"secretary":"Jane"}`, `{"tokens":3,"secretary":"Jane"}`, false},
	} {
		if got, want := string(masked([]byte(c.input), c.shell)), strings.ReplaceAll(c.want, "*", redacted); got != want {
			t.Errorf("%s\n is   %s\n want %s", c.input, got, want)
		}
	}
}
