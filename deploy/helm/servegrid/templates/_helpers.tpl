{{- define "servegrid.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- $name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "servegrid.selector" -}}
app.kubernetes.io/name: servegrid
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "servegrid.labels" -}}
{{ include "servegrid.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "servegrid.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "servegrid.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "servegrid.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{/* The address of the queue, with its namespace. */}}
{{- define "servegrid.queue" -}}
{{- if .Values.nats.enabled -}}
{{ ternary "tls" "nats" .Values.queue.tls.enabled }}://{{ include "servegrid.name" . }}-nats.{{ .Release.Namespace }}.svc:4222/{{ .Values.queue.namespace }}
{{- else -}}
{{ trimSuffix "/" .Values.nats.external.url }}/{{ .Values.queue.namespace }}
{{- end }}
{{- end }}

{{/* Where results go. */}}
{{- define "servegrid.output" -}}
{{- .Values.results.url | default (printf "/results/%s" .Values.results.folder) }}
{{- end }}

{{- define "servegrid.podMetadata" -}}
labels:
  {{- include "servegrid.selector" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .root.Values.podLabels }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with .root.Values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all servegrid pods have in common. */}}
{{- define "servegrid.podSpec" -}}
serviceAccountName: {{ include "servegrid.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Where pods run. */}}
{{- define "servegrid.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* Image and rights of a servegrid container. */}}
{{- define "servegrid.container" -}}
image: {{ include "servegrid.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The variables of a servegrid container: memory and cache, and what the user adds. */}}
{{- define "servegrid.env" -}}
- {name: GOMEMLIMIT, value: {{ .memory | quote }}}
- {name: XDG_CACHE_HOME, value: /cache}
{{- with .root.Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The variables with which a container proves to the queue who it is. */}}
{{- define "servegrid.queueEnv" -}}
{{- with .Values.queue }}
{{- if .credsFileSecret }}
- {name: NATS_CREDS, value: /etc/nats/nats.creds}
{{- end }}
{{- if .tls.caSecret }}
- {name: NATS_CA, value: /etc/nats/ca.crt}
{{- end }}
{{- if .tls.clientSecret }}
- {name: NATS_CERT, value: /etc/nats/tls.crt}
- {name: NATS_KEY, value: /etc/nats/tls.key}
{{- end }}
{{- end }}
{{- end }}

{{- define "servegrid.envFrom" -}}
{{- with .root.Values.envFrom }}
{{ toYaml . }}
{{- end }}
{{- if and .queue .root.Values.queue.credentialsSecret }}
- secretRef: {name: {{ .root.Values.queue.credentialsSecret }}}
{{- end }}
{{- end }}

{{/* The files with which a container proves to the queue who it is; empty when there are none. */}}
{{- define "servegrid.queueFiles" -}}
{{- with .Values.queue }}
{{- if .credsFileSecret }}
- secret: {name: {{ .credsFileSecret }}, items: [{key: nats.creds, path: nats.creds}]}
{{- end }}
{{- if .tls.caSecret }}
- secret: {name: {{ .tls.caSecret }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- if .tls.clientSecret }}
- secret: {name: {{ .tls.clientSecret }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}
{{- end }}

{{/* The names of Jobs. The pod of a Job cannot change, so another spec or other arguments are another Job; the results stay. */}}
{{- define "servegrid.sweepName" -}}
{{- with .Values.coordinator }}{{ include "servegrid.name" $ }}-sweep-{{ list .spec .specURL .args $.Values.results $.Values.image $.Values.queue | toJson | sha256sum | trunc 8 }}{{ end }}
{{- end }}

{{- define "servegrid.shardsName" -}}
{{- with .Values.shards }}{{ include "servegrid.name" $ }}-shards-{{ list .spec .specURL .args .count $.Values.results $.Values.image | toJson | sha256sum | trunc 8 }}{{ end }}
{{- end }}

{{/* The argument that names the spec. */}}
{{- define "servegrid.specArgument" -}}
{{- .specURL | default "/etc/servegrid/grid.yaml" }}
{{- end }}

{{- define "servegrid.resultsVolume" -}}
{name: results, persistentVolumeClaim: {claimName: {{ .Values.results.existingClaim | default (printf "%s-results" (include "servegrid.name" .)) }}}}
{{- end }}

{{/* Nine tenths of a size of a volume, in MiB: what a file system leaves. */}}
{{- define "servegrid.usable" -}}
{{- $unit := dict "Mi" 1 "Gi" 1024 "Ti" 1048576 }}
{{- div (mul (regexFind "^[0-9]+" . | int64) (index $unit (regexFind "[A-Z]i$" .)) 9) 10 }}
{{- end }}

{{/* A command that waits until a Job has ended, well or not: kubectl wait for one of the two hangs when it is the other. */}}
{{- define "servegrid.awaitJob" -}}
until kubectl -n {{ index . 0 }} get job/{{ index . 1 }} -o jsonpath='{.status.conditions[*].type}' | grep -E 'Complete|Failed'; do sleep 10; done
{{- end }}
