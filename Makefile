# Every task of the project has a name here, and CI calls the same names. `make` lists them.

.DEFAULT_GOAL := help
SHELL := /bin/bash
CARGO ?= cargo

# Only committed versions are built: a stale Cargo.lock is an error, not an update.
LOCKED := --locked

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: setup ## Build the berth binary (release) into target/release: one file that needs no library
	$(CARGO) rustc --release $(LOCKED) -p agent --bin berth -- -C target-feature=+crt-static

.PHONY: test
test: setup-tests ## Set up what is missing and run every test but make test-cluster's (as root: namespaces, a guest, API servers)
	@tests/run.sh

.PHONY: test-long
test-long: setup-tests ## What takes minutes more: plans, captures and pools by the ten thousand, pairs of faults whole, hosts by the score
	PROPTEST_CASES=20000 $(CARGO) test $(LOCKED) --profile core -p policy --lib
	BERTH_MODEL_WHOLE=1 $(CARGO) test $(LOCKED) --profile core -p berth-tests --test model every_pair_of_faults
	BERTH_SCENARIOS=20 $(CARGO) test $(LOCKED) -p agent --test kernel -- generated_hosts everything_in_a_guest

# For the nodes of a test: one that needs no library. A development build, linked another way, since a release takes long.
CLUSTER_BERTH := target/cluster/berth

.PHONY: build-cluster
build-cluster: setup-tests ## Build what make test-cluster runs
	tests/cluster/build.sh >/dev/null
ifndef BERTH_STATIC
	$(CARGO) rustc $(LOCKED) -p agent --bin berth --features testing -- -C target-feature=+crt-static -C strip=symbols
	install -D target/debug/berth $(CLUSTER_BERTH)
endif
	$(CARGO) test $(LOCKED) --workspace --test cluster --no-run

.PHONY: test-cluster
test-cluster: build-cluster ## Berth on a cluster with real kubelets, in namespaces of this machine (as root); TEST=nodes runs some, BERTH_STATIC=file another build
	BERTH_STATIC=$(abspath $(or $(BERTH_STATIC),$(CLUSTER_BERTH))) $(CARGO) test $(LOCKED) --workspace --test cluster -- --ignored --test-threads=1 $(TEST)

.PHONY: demo
demo: setup ## Build berth and show it all on this machine: hosts, pools, a policy, and what may happen to them
	$(CARGO) build $(LOCKED) -p agent
	target/debug/berth demo

.PHONY: lint
lint: setup ## Format, clippy and rustdoc with warnings as errors, and the purity of policy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $(LOCKED) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items $(LOCKED)
	.ci/purity

.PHONY: fmt
fmt: setup ## Format the code
	$(CARGO) fmt --all

.PHONY: generate
generate: setup ## Write crds/yaml, docs/api.md, docs/man and agent/completions anew from the types
	$(CARGO) run $(LOCKED) -p crds --example generate
	$(CARGO) run $(LOCKED) -p crds --example reference
	$(CARGO) run $(LOCKED) -p agent --example commands

.PHONY: bless
bless: setup-tests ## Write every golden anew from what the code says now; read the diff before you commit
	UPDATE_GOLDENS=1 $(CARGO) test --workspace --no-fail-fast $(LOCKED)

# The program that people run, as 'make bench BERTH=target/release/berth' measures it.
MEASURED := target/measured/berth

.PHONY: bench
bench: setup-tests ## Measure, and print tables; BENCH=plan runs one of pool, render, plan, serve, api, controller, page, and (as root) kernel, agents, claims, fleet
	@# Where 'make build' put it, the profile of measuring puts its own.
	@[ -z "$(BERTH)" ] || install -D "$(BERTH)" $(MEASURED)
	$(CARGO) bench $(LOCKED) -p berth-tests --bench tables -- $(BENCH)
	$(CARGO) bench $(LOCKED) -p agent --bench kernel -- $(BENCH)
	$(CARGO) bench $(LOCKED) -p agent --bench api -- $(BENCH)
	$(if $(BERTH),BERTH=$(abspath $(MEASURED))) $(CARGO) bench $(LOCKED) -p agent --bench agents -- $(BENCH)
	$(if $(BERTH),BERTH=$(abspath $(MEASURED))) $(CARGO) bench $(LOCKED) -p agent --bench controller -- $(BENCH)
	$(if $(BERTH),BERTH=$(abspath $(MEASURED))) $(CARGO) bench $(LOCKED) -p agent --bench page -- $(BENCH)
	$(CARGO) bench $(LOCKED) -p agent --bench claims -- $(BENCH)
	$(CARGO) bench $(LOCKED) -p api-tests --bench api -- $(BENCH)

# What a node runs: one program that needs no library, and nothing else.
VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml)
IMAGE ?= localhost/berth:$(VERSION)
IMAGE_TARGET ?= $(shell uname -m)-unknown-linux-gnu
# glibc inside the program, and no word of where it was built: the same commit gives the same bytes.
IMAGE_FLAGS := -C target-feature=+crt-static --remap-path-prefix=$(CURDIR)=/berth --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo

.PHONY: image
image: setup ## Write the container image target/berth-image.tar, without a daemon; IMAGE=name:tag
	RUSTFLAGS="$(IMAGE_FLAGS)" $(CARGO) build --release $(LOCKED) --target $(IMAGE_TARGET) -p agent
	IMAGE_TARGET=$(IMAGE_TARGET) deploy/image.sh target/$(IMAGE_TARGET)/release/berth $(IMAGE) target/berth-image.tar

# Where the chart's archive is put.
CHARTS ?= target

.PHONY: chart
chart: ## Write the Helm chart as an archive, target/berth-VERSION.tgz, with files in place of the folder's links; CHARTS=folder, HELM=one of yours
	@helm=$(or $(HELM),$$(tests/helm/build.sh)) && "$$helm" package deploy/chart --destination $(CHARTS)

.PHONY: test-image
test-image: setup ## Build the image twice, in two places, and compare the digests; many minutes
	tests/reproducible.sh

.PHONY: soak
soak: setup ## Run the claim protocol's model check in all its configurations, for hours
	$(CARGO) run --release $(LOCKED) -p berth-tests --bin model -- $(if $(SOAK),$(SOAK),--soak)

# Where 'make install' puts things. DESTDIR goes before everything, for packagers.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSCONFDIR ?= /etc
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
BINARY ?= target/release/berth
UNITS := berth.service berth-boot.service berth-serve.service
MANUALS := $(notdir $(wildcard docs/man/*.1))

.PHONY: install
install: ## Install what 'make build' built: binary, kubectl plugin, man pages, completions, units, settings; DESTDIR=, PREFIX=/usr/local
	@test -x $(BINARY) || { echo "there is no $(BINARY): run 'make build' first" >&2; exit 1; }
	install -D -m 755 $(BINARY) $(DESTDIR)$(BINDIR)/berth
	ln -sf berth $(DESTDIR)$(BINDIR)/kubectl-berth
	install -d -m 755 $(DESTDIR)$(MANDIR)/man1
	install -m 644 docs/man/*.1 $(DESTDIR)$(MANDIR)/man1/
	install -D -m 644 agent/completions/berth.bash $(DESTDIR)$(BASHDIR)/berth
	install -D -m 644 agent/completions/_berth $(DESTDIR)$(ZSHDIR)/_berth
	install -D -m 644 agent/completions/berth.fish $(DESTDIR)$(FISHDIR)/berth.fish
	install -d -m 755 $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSCONFDIR)/berth/manifests
	for unit in $(UNITS); do \
		sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|' systemd/$$unit > $(DESTDIR)$(UNITDIR)/$$unit && \
		chmod 644 $(DESTDIR)$(UNITDIR)/$$unit || exit 1; \
	done
	for file in agent.yaml serve.env; do \
		test -e $(DESTDIR)$(SYSCONFDIR)/berth/$$file || install -m 644 systemd/$$file $(DESTDIR)$(SYSCONFDIR)/berth/$$file || exit 1; \
	done

.PHONY: uninstall
uninstall: ## Remove binary, plugin, man pages, completions and units; settings and state stay
	rm -f $(DESTDIR)$(BINDIR)/berth $(DESTDIR)$(BINDIR)/kubectl-berth $(UNITS:%=$(DESTDIR)$(UNITDIR)/%)
	rm -f $(MANUALS:%=$(DESTDIR)$(MANDIR)/man1/%)
	rm -f $(DESTDIR)$(BASHDIR)/berth $(DESTDIR)$(ZSHDIR)/_berth $(DESTDIR)$(FISHDIR)/berth.fish
	@echo "settings in $(DESTDIR)$(SYSCONFDIR)/berth and state in /var/lib/berth stay: they say what this host holds"

.PHONY: setup
setup: ## Check what building needs, and install what is missing (Debian, as root)
	@tests/setup.sh

.PHONY: setup-tests
setup-tests: ## Check what tests need too, and install what is missing
	@tests/setup.sh --tests

.PHONY: clean
clean: ## Remove what was built
	$(CARGO) clean
