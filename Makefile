# The same targets run here and in CI.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   ?= 10s
TOOLS      ?= $(CURDIR)/.tools

.PHONY: help test race lint check generate bench fuzz tools

help: ## show this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## run every test (this is README's command)
	go test ./...

race: ## run every test with the race detector, in random order
	go test -race -shuffle=on -timeout 30m ./...

lint: tools ## formatting, vet, static analysis, module tidiness
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt would change:"; echo "$$files"; exit 1; }
	go vet ./...
	$(TOOLS)/staticcheck ./...
	go mod tidy -diff
	go mod verify

tools: $(TOOLS)/staticcheck

$(TOOLS)/staticcheck:
	GOBIN=$(TOOLS) go install $(STATICCHECK)

fuzz: ## run every fuzz target for FUZZTIME each
	./.ci/fuzz $(FUZZTIME)

generate: ## write everything that is generated
	go generate ./...

check: lint test race fuzz ## everything CI checks
	./.ci/startup
	go generate ./...
	@git diff --exit-code || { echo "make generate changed the tree: commit what it wrote"; exit 1; }

bench: ## run the benchmarks (docs/performance.md says how to read them)
	go test -run '^$$' -bench . -benchtime 2s ./bench ./guard
