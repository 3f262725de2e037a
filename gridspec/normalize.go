package gridspec

// Specs may write the key path of an axis nested (`grid: {engine: {block_size: [16, 64]}}`, which is what TOML
// makes of dotted keys) or dotted, and some settings have another name too. normalize gives every tree the
// dotted form and the canonical names.

func (p *strictParser) normalize(tree map[string]any) {
	for _, name := range p.origins.sorted("", tree) {
		p.normalizeSection(name, tree)
	}
}

func (p *strictParser) normalizeSection(name string, tree map[string]any) {
	section, isMap := tree[name].(map[string]any)
	switch name {
	case "grid", "zip":
		if isMap {
			tree[name] = p.dotted(name, section, true)
		}
	case "random", "lhs", "sobol":
		if space, ok := section["space"].(map[string]any); ok {
			section["space"] = p.dotted(join(name, "space"), space, true)
		}
	case "cases":
		for _, label := range p.origins.sorted(name, section) {
			if b, ok := section[label].(map[string]any); ok {
				section[label] = p.dotted(join(name, label), b, false)
			}
		}
	case "include":
		list, _ := tree[name].([]any)
		for i, element := range list {
			if b, ok := element.(map[string]any); ok {
				list[i] = p.dotted(indexed(name, i), b, false)
			}
		}
	default:
		if isMap && configKeys.isSection(name) {
			p.renameAliases(name, section)
		}
	}
}

// dotted flattens the mapping at path to key paths. In axes a mapping under workload is nested as well; in a
// bundle it is a whole workload.
func (p *strictParser) dotted(path string, nested map[string]any, axes bool) map[string]any {
	flat := make(map[string]any, len(nested))
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for _, k := range p.origins.sorted(join(path, prefix), m) {
			name := join(prefix, k)
			inner, isMap := m[k].(map[string]any)
			if isMap && configKeys.isSection(name) && (axes || name != workloadPath) {
				walk(name, inner)
				continue
			}
			canonical := canonicalPath(name)
			if canonical != name {
				p.origins.rename(join(path, name), join(path, canonical))
			}
			if _, twice := flat[canonical]; twice {
				p.addMessage(join(path, canonical), "this key path is written twice")
			}
			flat[canonical] = m[k]
		}
	}
	walk("", nested)
	return flat
}

// renameAliases gives the settings of one section their canonical names.
func (p *strictParser) renameAliases(name string, section map[string]any) {
	for _, k := range p.origins.sorted(name, section) {
		if inner, isMap := section[k].(map[string]any); isMap && configKeys.isSection(join(name, k)) {
			p.renameAliases(join(name, k), inner)
		}
		canonical := canonicalPath(join(name, k))
		if canonical == join(name, k) {
			continue
		}
		own := canonical[len(name)+1:]
		if _, twice := section[own]; twice {
			p.addMessage(join(name, k), "this is another name of %s, which is given too", canonical)
			delete(section, k)
			continue
		}
		section[own] = section[k]
		delete(section, k)
		p.origins.rename(join(name, k), canonical)
	}
}
